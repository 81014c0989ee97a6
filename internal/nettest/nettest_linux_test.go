package nettest_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/antrea-lite/podnet/internal/nettest"
)

func TestMain(m *testing.M) {
	nettest.Main()
	os.Exit(m.Run())
}

func TestNamespacesArePrivateAndThreadsComeBack(t *testing.T) {
	if os.Getpid() != 1 {
		t.Errorf("process id is %d, not that of a PID namespace's first process", os.Getpid())
	}
	before, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		path, err := nettest.NewNS(fmt.Sprint("test", i))
		if err != nil {
			t.Fatal(err)
		}
		// The first thread, which /proc/self shows, and this one are where they were.
		for _, link := range []string{"/proc/self/ns/net", "/proc/thread-self/ns/net"} {
			if now, err := os.Readlink(link); err != nil || now != before {
				t.Fatalf("%s is %s, %v; it was %s", link, now, err, before)
			}
		}
		ns, err := netns.GetFromPath(path)
		if err != nil {
			t.Fatal(err)
		}
		h, err := netlink.NewHandleAt(ns)
		if err != nil {
			t.Fatal(err)
		}
		if links, err := h.LinkList(); err != nil || len(links) != 1 || links[0].Attrs().Name != "lo" {
			t.Errorf("a new namespace has %v, %v", links, err)
		}
		h.Close()
		ns.Close()
		if err := nettest.DeleteNS(path); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat("/run/netns/test0"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("deleted namespace: %v", err)
	}
}

func TestNameTaken(t *testing.T) {
	path, err := nettest.NewNS("taken")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nettest.NewNS("taken"); !errors.Is(err, os.ErrExist) {
		t.Errorf("second namespace of one name: %v", err)
	}
	if err := nettest.DeleteNS(path); err != nil {
		t.Error(err)
	}
}
