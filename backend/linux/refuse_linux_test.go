package linux

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Every request that cannot work gets one error that names the value, the
// cause and what to do, and leaves nothing behind.
func TestLinkRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := newNS(t)
	if err := unix.Unmount(gone, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	prefix, ip := netip.MustParsePrefix, netip.MustParseAddr
	tests := []struct {
		name string
		edit func(*podnet.Request)
		want []string // in the error's text
	}{
		{"no container id", func(r *podnet.Request) { r.ContainerID = "" }, []string{"container id is empty", "CNI_CONTAINERID"}},
		{"no interface name", func(r *podnet.Request) { r.IfName = "" }, []string{"interface name is empty"}},
		{"long interface name", func(r *podnet.Request) { r.IfName = "abcdefghijklmnop" }, []string{`"abcdefghijklmnop"`, "16 characters", "15"}},
		{"interface name with a slash", func(r *podnet.Request) { r.IfName = "../eth0" }, []string{`"../eth0"`, "refuses"}},
		{"interface name template", func(r *podnet.Request) { r.IfName = "eth%d" }, []string{`"eth%d"`}},
		{"interface name with a space", func(r *podnet.Request) { r.IfName = "eth 0" }, []string{`"eth 0"`}},
		{"interface name is a directory", func(r *podnet.Request) { r.IfName = ".." }, []string{`".."`}},
		{"no namespace", func(r *podnet.Request) { r.NetNS = "" }, []string{"path is empty", "CNI_NETNS"}},
		{"namespace missing", func(r *podnet.Request) { r.NetNS = "/run/netns/nowhere" }, []string{`"/run/netns/nowhere"`, "sandbox has ended"}},
		{"namespace unmounted", func(r *podnet.Request) { r.NetNS = gone }, []string{gone, "unmounted"}},
		{"a plain file", func(r *podnet.Request) { r.NetNS = file }, []string{file, "not a namespace file"}},
		{"a FIFO", func(r *podnet.Request) { r.NetNS = fifo }, []string{fifo, "not a namespace file"}},
		{"a PID namespace", func(r *podnet.Request) { r.NetNS = "/proc/self/ns/pid" }, []string{"/proc/self/ns/pid", "another kind"}},
		{"the host's namespace", func(r *podnet.Request) { r.NetNS = "/proc/self/ns/net" }, []string{"/proc/self/ns/net", "host's own"}},
		{"multicast MAC", func(r *podnet.Request) { r.MAC = ifstore.MAC{1, 0, 0x5e, 0, 0, 1} }, []string{"01:00:5e:00:00:01", "multicast"}},
		{"MAC of the host's end", func(r *podnet.Request) { r.MAC = hostMAC(r.Key) }, []string{"host's end"}},
		{"MTU too small", func(r *podnet.Request) { r.MTU = 67 }, []string{"MTU 67", "68"}},
		{"MTU too small for IPv6", func(r *podnet.Request) {
			r.MTU, r.Addresses = 1279, []ifstore.Address{addr("fd00::3/64", "")}
		}, []string{"MTU 1279", "1280"}},
		{"MTU too large", func(r *podnet.Request) { r.MTU = 65536 }, []string{"MTU 65536", "65535"}},
		{"no address", func(r *podnet.Request) { r.Addresses = []ifstore.Address{{}} }, []string{"prefix length"}},
		{"mapped address", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{{Prefix: netip.PrefixFrom(ip("::ffff:10.0.0.1"), 120)}}
		}, []string{"::ffff:10.0.0.1"}},
		{"multicast address", func(r *podnet.Request) { r.Addresses = []ifstore.Address{addr("224.0.0.1/24", "")} }, []string{"224.0.0.1/24", "unicast"}},
		{"address twice", func(r *podnet.Request) {
			r.Addresses = []ifstore.Address{addr("10.0.0.1/24", ""), addr("10.0.0.1/16", "")}
		}, []string{"10.0.0.1", "twice"}},
		{"gateway of the other family", func(r *podnet.Request) { r.Addresses = []ifstore.Address{addr("10.0.0.1/24", "fd00::1")} }, []string{"fd00::1", "other address family"}},
		{"its own gateway", func(r *podnet.Request) { r.Addresses = []ifstore.Address{addr("10.0.0.1/24", "10.0.0.1")} }, []string{"10.0.0.1", "own address"}},
		{"route without a destination", func(r *podnet.Request) { r.Routes = []ifstore.Route{{}} }, []string{"destination"}},
		{"route of a family without address", func(r *podnet.Request) { r.Routes = []ifstore.Route{{Dst: prefix("fd00::/8")}} }, []string{"fd00::/8", "no address of its family"}},
		{"route through the other family", func(r *podnet.Request) {
			r.Routes = []ifstore.Route{{Dst: prefix("10.96.0.0/12"), GW: ip("fd00::1")}}
		}, []string{"fd00::1", "other address family"}},
		{"route with a bad MTU", func(r *podnet.Request) { r.Routes = []ifstore.Route{{Dst: prefix("10.96.0.0/12"), MTU: -1}} }, []string{"MTU -1"}},
		{"two gateways for one destination", func(r *podnet.Request) {
			r.Routes = []ifstore.Route{{Dst: prefix("10.96.0.0/12")}, {Dst: prefix("10.96.0.0/12"), GW: ip("10.1.2.7")}}
		}, []string{"10.96.0.0/12", "10.1.2.7", "two routes"}},
	}
	l, path := newLinker(t, Config{}), newNS(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := request4("c1", path)
			tt.edit(&req)
			_, err := l.Link(context.Background(), req)
			if !errors.Is(err, podnet.ErrBadRequest) {
				t.Fatalf("error %v does not wrap ErrBadRequest", err)
			}
			wantText(t, err, tt.want...)
			wantNothingLeft(t, path)
		})
	}
}

// wantNothingLeft fails unless host and container have no link but the named ones and lo.
func wantNothingLeft(t *testing.T, path string, but ...string) {
	t.Helper()
	if diff := cmp.Diff(but, hostLinks(t)); diff != "" {
		t.Errorf("links of the host (-want +got):\n%s", diff)
	}
	within(t, path, func(h *netlink.Handle) {
		links, err := h.LinkList()
		if err != nil || len(links) != 1 {
			t.Errorf("links of the container: %v, %v", links, err)
		}
	})
}

// What the kernel refuses half-way is undone.
func TestLinkUndoesWhatTheKernelRefuses(t *testing.T) {
	l, path := newLinker(t, Config{}), newNS(t)
	req := request4("c1", path)
	req.Routes = []ifstore.Route{{Dst: netip.MustParsePrefix("10.96.0.0/12"), GW: netip.MustParseAddr("10.1.2.255")}}
	_, err := l.Link(context.Background(), req)
	wantText(t, err, "eth0", path, "10.96.0.0/12 via 10.1.2.255", "invalid gateway")
	wantNothingLeft(t, path)

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(podnet.ErrOvertaken)
	if _, err := l.Link(ctx, request4("c1", path)); !errors.Is(err, podnet.ErrOvertaken) {
		t.Errorf("ended context: %v", err)
	}
	wantNothingLeft(t, path)
}

func TestInterfaceNameTakenInContainer(t *testing.T) {
	for _, altname := range []bool{false, true} {
		l, path := newLinker(t, Config{}), newNS(t)
		within(t, path, func(h *netlink.Handle) {
			name := "eth0"
			if altname {
				name = "other"
			}
			mac := []byte{2, 0, 0, 0, 0, 9}
			if err := h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: mac}, PeerName: "peer"}); err != nil {
				t.Fatal(err)
			}
			if altname {
				d, err := h.LinkByName(name)
				if err != nil {
					t.Fatal(err)
				}
				if err := h.LinkAddAltName(d, "eth0"); err != nil {
					t.Fatal(err)
				}
			}
		})
		_, err := l.Link(context.Background(), request4("c1", path))
		if !errors.Is(err, podnet.ErrBadRequest) {
			t.Errorf("error %v does not wrap ErrBadRequest", err)
		}
		wantText(t, err, path, `"eth0"`, "veth", "02:00:00:00:00:09", "remove it")
		if left := hostLinks(t); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
}

// A stranger's interface that has our name is named and left alone, also when
// the name is only an alternative one (NL-14).
func TestHostNameTakenByStranger(t *testing.T) {
	strangerMAC := hostMAC(ifstore.Key{ContainerID: "c9", IfName: "eth0"})
	l, path := newLinker(t, Config{}), newNS(t)
	req := request4("c1", path)
	name := hostName("pod", req.Key)
	tests := map[string]struct {
		stranger netlink.Link
		altname  bool
	}{
		"tap":              {stranger: &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: netlink.TUNTAP_MODE_TAP}},
		"altname":          {stranger: &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "stranger"}, PeerName: "strangerpeer"}, altname: true},
		"veth":             {stranger: &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "strangerpeer"}},
		"veth, our prefix": {stranger: &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name, HardwareAddr: strangerMAC[:]}, PeerName: "strangerpeer"}},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			if err := netlink.LinkAdd(tt.stranger); err != nil {
				t.Fatal(err)
			}
			defer netlink.LinkDel(tt.stranger)
			if tt.altname {
				if err := netlink.LinkAddAltName(tt.stranger, name); err != nil {
					t.Fatal(err)
				}
			}
			before := hostLinks(t)
			_, err := l.Link(context.Background(), req)
			if !errors.Is(err, podnet.ErrPortExists) {
				t.Errorf("error %v does not wrap ErrPortExists", err)
			}
			wantText(t, err, name, "c1/eth0", tt.stranger.Attrs().Name, "prefix")
			if err := l.Unlink(context.Background(), ifstore.Interface{Key: req.Key, Name: name}); err != nil {
				t.Errorf("Unlink: %v", err)
			}
			wantNothingLeft(t, path, before...)
			if alive, err := l.Alive(context.Background(), ifstore.Interface{Key: req.Key, Name: name, NetNS: path}); alive || err != nil {
				t.Errorf("Alive: %v, %v", alive, err)
			}
			wantText(t, l.Check(context.Background(), ifstore.Interface{Key: req.Key, Name: name, NetNS: path}), "stranger")
		})
	}
}

// An agent that was killed between Link and its record leaves a pair behind;
// the ADD that comes again replaces it.
func TestLinkReplacesItsOwnLeftover(t *testing.T) {
	for _, withAlias := range []bool{true, false} {
		l, old, path := newLinker(t, Config{}), newNS(t), newNS(t)
		first := link(t, l, request4("c1", old))
		if !withAlias { // killed even before the alias was set
			c, err := dialRTNL()
			if err != nil {
				t.Fatal(err)
			}
			host, err := lookUp(c, first.Name)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := perform(c, step{req: setAlias(host.index, "")}); err != nil {
				t.Fatal(err)
			}
			c.close()
		}
		second := link(t, newLinker(t, Config{}), request4("c1", path)) // the next process
		if second.Name != first.Name || second.MAC != first.MAC {
			t.Errorf("second try: %+v, first %+v", second, first)
		}
		if err := l.Check(context.Background(), second); err != nil {
			t.Error(err)
		}
		within(t, old, func(h *netlink.Handle) {
			if _, err := h.LinkByName("eth0"); err == nil {
				t.Error("the leftover is still there")
			}
		})
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, cfg := range []Config{{HostPrefix: "abcdefgh"}, {HostPrefix: "a/b"}, {MTU: -1}, {MTU: 70000}} {
		if _, err := NewLinker(cfg); !errors.Is(err, podnet.ErrBadRequest) {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
