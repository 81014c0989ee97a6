package linux

import (
	"context"
	"os"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// DEL needs nothing of the container and may come any number of times (CN-1, CN-2).
func TestUnlinkWithoutNamespace(t *testing.T) {
	ctx := context.Background()
	l := newLinker(t, Config{})
	for name, end := range map[string]func(*testing.T, *ifstore.Interface){
		"as it is":            func(*testing.T, *ifstore.Interface) {},
		"path not recorded":   func(_ *testing.T, i *ifstore.Interface) { i.NetNS = "" },
		"path gone":           func(t *testing.T, i *ifstore.Interface) { deleteNS(t, i.NetNS) },
		"path is another one": func(t *testing.T, i *ifstore.Interface) { i.NetNS = newNS(t) },
		"pair gone already": func(t *testing.T, i *ifstore.Interface) {
			h, err := netlink.LinkByName(i.Name)
			if err == nil {
				err = netlink.LinkDel(h)
			}
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			iface := link(t, l, request4("c1", newNS(t)))
			// Something else holds the namespace, so the pair outlives its path.
			holder, err := os.Open(iface.NetNS)
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Close()
			end(t, &iface)
			for range 3 {
				if err := l.Unlink(ctx, iface); err != nil {
					t.Error(err)
				}
			}
			if left := hostLinks(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if alive, err := l.Alive(ctx, iface); alive || err != nil {
				t.Errorf("Alive after Unlink: %v, %v", alive, err)
			}
		})
	}
	if err := l.Unlink(ctx, ifstore.Interface{Key: ifstore.Key{ContainerID: "never", IfName: "eth0"}, Name: "podnever"}); err != nil {
		t.Errorf("Unlink of the unknown: %v", err)
	}
}

// A process that was killed after it deleted the port leaves a pair in no record.
func TestUnlinkOrphan(t *testing.T) {
	l := newLinker(t, Config{HostPrefix: "x"})
	iface := link(t, l, request4("c1", newNS(t)))
	for range 2 {
		if err := l.UnlinkOrphan(context.Background(), iface.Key); err != nil {
			t.Error(err)
		}
		if left := hostLinks(t); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// Two sandboxes of one Pod: a late DEL of the first leaves the second alone (CN-5).
func TestUnlinkOfOldSandbox(t *testing.T) {
	l := newLinker(t, Config{})
	pod := ifstore.Pod{Namespace: "default", Name: "web-0"}
	first, second := request4("c1", newNS(t)), request4("c2", newNS(t))
	first.Pod, second.Pod = pod, pod
	a, b := link(t, l, first), link(t, l, second)
	if a.Name == b.Name || a.MAC == b.MAC {
		t.Fatalf("%+v and %+v share a name or MAC", a, b)
	}
	if err := l.Unlink(context.Background(), a); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(context.Background(), b); err != nil {
		t.Error(err)
	}
}

func TestAlive(t *testing.T) {
	ctx := context.Background()
	l := newLinker(t, Config{})
	iface := link(t, l, request4("c1", newNS(t)))
	alive := func(want bool) {
		t.Helper()
		if got, err := l.Alive(ctx, iface); got != want || err != nil {
			t.Errorf("Alive: %v, %v, want %v", got, err, want)
		}
	}
	alive(true)
	holder, err := os.Open(iface.NetNS)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	// The mount goes and the file stays, as after a crash half-way through `ip netns del`.
	if err := unix.Unmount(iface.NetNS, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	alive(false)
	if err := os.Remove(iface.NetNS); err != nil {
		t.Fatal(err)
	}
	alive(false)
	iface.NetNS = "" // nothing recorded: the pair itself tells
	alive(true)
	if err := l.Unlink(ctx, iface); err != nil {
		t.Fatal(err)
	}
	alive(false)
}

func deleteNS(t *testing.T, path string) {
	t.Helper()
	if err := nettest.DeleteNS(path); err != nil {
		t.Fatal(err)
	}
}
