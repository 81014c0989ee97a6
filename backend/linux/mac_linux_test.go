package linux

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// Something rewrites the container's MAC after creation (NL-1). Whenever it
// does, what Link returned is what the interface has in the end.
func TestMACChangedByAnotherProgram(t *testing.T) {
	l := newLinker(t, Config{})
	for i, delay := range []time.Duration{0, 0, 0, 200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
		path := newNS(t)
		changed := make(chan error, 1)
		ready := make(chan struct{})
		go meddle(path, delay, ready, changed)
		<-ready
		iface := link(t, l, request4(fmt.Sprint("c", i), path))
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
		if err := l.Announce(context.Background(), iface); err != nil {
			t.Fatal(err)
		}
		if got := layoutOf(t, path, "eth0").MAC; got != iface.MAC.String() {
			t.Errorf("after %v: MAC is %s, Link returned %v", delay, got, iface.MAC)
		}
		if err := l.Check(context.Background(), iface); err != nil {
			t.Error(err)
		}
	}
}

// meddle changes the MAC address of eth0 as soon as it is seen, and delay later.
func meddle(path string, delay time.Duration, ready chan<- struct{}, done chan<- error) {
	ns, err := openNetNS(path)
	if err != nil {
		close(ready)
		done <- err
		return
	}
	defer ns.close()
	done <- ns.run(func() error {
		c, err := dialRTNL()
		close(ready)
		if err != nil {
			return err
		}
		defer c.close()
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			l, err := lookUp(c, "eth0")
			if errors.Is(err, errNoLink) {
				continue
			}
			if err != nil {
				return err
			}
			for end := time.Now().Add(delay); time.Now().Before(end); {
			}
			_, err = perform(c, step{what: "meddle", req: setMAC(l.index, ifstore.MAC{2, 6, 6, 6, 6, 6})})
			return err
		}
		return errors.New("eth0 never came")
	})
}

// A MAC address that was changed before Link is done is put back; one that
// cannot be kept is an error: flows would be made for a wrong one.
func TestKeepMAC(t *testing.T) {
	iface := link(t, newLinker(t, Config{}), request4("c1", newNS(t)))
	inside(t, iface.NetNS, func() error {
		c, err := dialRTNL()
		if err != nil {
			return err
		}
		defer c.close()
		eth0, err := lookUp(c, "eth0")
		if err != nil {
			return err
		}
		got, err := perform(c, step{req: setMAC(eth0.index, ifstore.MAC{2, 6, 6, 6, 6, 6})}, step{req: getLink(eth0.index)})
		if err != nil {
			return err
		}
		if err := keepMAC(c, "eth0", got, iface.MAC); err != nil {
			t.Error(err)
		}
		if eth0, err = lookUp(c, "eth0"); err != nil || eth0.mac != iface.MAC {
			t.Errorf("MAC is %v, %v, want %v", eth0.mac, err, iface.MAC)
		}
		// The kernel takes no multicast address: a stand-in for a program that changes it back at once.
		wantText(t, keepMAC(c, "eth0", got, ifstore.MAC{3, 0, 0, 0, 0, 1}), "eth0", iface.MAC.String(), "03:00:00:00:00:01", "udev")
		return nil
	})
}
