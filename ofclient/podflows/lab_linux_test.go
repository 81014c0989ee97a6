package podflows_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/packet"
	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/nettest"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

const (
	bridge = "br0"
	gwName = "gw0"
)

// lab is one bridge with a gateway and Pods, real netdevs and real flows.
type lab struct {
	t        *testing.T
	sw       *vswitchtest.Switch
	client   *ofclient.Client
	flows    *podflows.Installer
	node     podflows.Node
	gateway  *station
	stations []*station // Pods
	tags     *int
}

// on is the lab for a subtest.
func (l *lab) on(t *testing.T) *lab {
	sub := *l
	sub.t = t
	return &sub
}

// station is an end of a port: a Pod, or the gateway.
type station struct {
	name  string
	ns    string // path; "" for the test's own
	dev   string
	iface ifstore.Interface
	mac   [6]byte
	conn  *packet.Conn
}

type podSpec struct {
	name  string
	addrs []string // with prefix length
	vlan  uint16
	l2    bool // the addresses are the container's own business
}

// newLab starts a bridge, plugs the Pods and waits for a session that has replayed their flows.
func newLab(t *testing.T, specs ...podSpec) *lab {
	t.Helper()
	l := &lab{t: t, sw: vswitchtest.Start(t), tags: new(int)}
	if err := l.sw.AddBridge(bridge, *datapath); err != nil {
		t.Fatal(err)
	}
	l.addGateway()
	for n, spec := range specs {
		l.addPod(n, spec)
	}
	l.connect()
	return l
}

func (l *lab) addGateway() {
	l.t.Helper()
	gw := &station{name: "gateway", dev: gwName, mac: [6]byte{2, 0, 0, 0, 0, 1}}
	l.vsctl("add-port", bridge, gwName, "--", "set", "interface", gwName, "type=internal", fmt.Sprintf("mac=%q", ifstore.MAC(gw.mac)))
	l.raiseGateway(gw)
	gw.iface.OFPort = l.ofport(gwName)
	l.t.Cleanup(func() { l.ok(gw.conn.Close()) })
	l.gateway = gw
	l.node = podflows.Node{
		Gateway: podflows.Gateway{OFPort: gw.iface.OFPort, MAC: gw.mac, Addrs: []netip.Addr{netip.MustParseAddr("10.10.0.1"), netip.MustParseAddr("fd10::1")}},
		PodCIDRs: []netip.Prefix{
			netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("10.10.1.0/24"), netip.MustParsePrefix("fd10::/64"),
		},
	}
}

// raiseGateway configures gw0, without forwarding: what the host sent on would
// look like what the switch sent. gw0 comes back bare when ovs-vswitchd restarts or renumbers it.
func (l *lab) raiseGateway(gw *station) {
	l.t.Helper()
	link := l.must(netlink.LinkByName(gwName)).(netlink.Link)
	for _, a := range []string{"10.10.0.1/24", "fd10::1/64"} {
		l.addAddr(netlink.AddrReplace, link, a)
	}
	l.ok(netlink.LinkSetUp(link))
	// The second local subnet hangs on the same gateway.
	l.ok(netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: mustNet("10.10.1.0/24")}))
	if gw.conn != nil {
		l.ok(gw.conn.Close())
	}
	gw.conn = l.must(listen(gwName)).(*packet.Conn)
}

func (l *lab) addPod(n int, spec podSpec) {
	l.t.Helper()
	s := &station{name: spec.name, dev: "eth0", mac: [6]byte{0x0a, 0x58, 0, 0, byte(spec.vlan), byte(n + 0x10)}}
	var err error
	if s.ns, err = nettest.NewNS(spec.name); err != nil {
		l.t.Fatal(err)
	}
	host := "h-" + spec.name
	l.t.Cleanup(func() {
		// The link first: a namespace with a link in it goes at its leisure.
		link, err := netlink.LinkByName(host)
		if err == nil {
			err = netlink.LinkDel(link)
		}
		if err := errors.Join(err, s.conn.Close(), nettest.DeleteNS(s.ns)); err != nil {
			l.t.Error(err)
		}
	})
	l.in("", func() error {
		ns, err := netns.GetFromPath(s.ns)
		if err != nil {
			return err
		}
		defer ns.Close()
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: host}, PeerName: s.dev,
			PeerNamespace: netlink.NsFd(ns), PeerHardwareAddr: s.mac[:],
		})
	})
	l.in(s.ns, func() error { return l.configure(s, spec.addrs) })
	// Under the userspace datapath the host's own stack hears what comes in by
	// the host end, too, and would answer and route it past the switch.
	for _, key := range []string{"ipv4/conf/" + host + "/arp_ignore=8", "ipv6/conf/" + host + "/disable_ipv6=1"} {
		name, value, _ := strings.Cut(key, "=")
		l.ok(os.WriteFile("/proc/sys/net/"+name, []byte(value), 0o644))
	}
	l.ok(netlink.LinkSetUp(l.must(netlink.LinkByName(host)).(netlink.Link)))
	l.vsctl("add-port", bridge, host)

	s.iface = ifstore.Interface{
		Key: ifstore.Key{ContainerID: "container-" + spec.name, IfName: s.dev}, Pod: ifstore.Pod{Namespace: "test", Name: spec.name},
		Name: host, OFPort: l.ofport(host), MAC: s.mac, VLAN: spec.vlan, Created: time.Unix(int64(n), 0),
	}
	if !spec.l2 {
		for _, a := range spec.addrs {
			s.iface.Addresses = append(s.iface.Addresses, ifstore.Address{Prefix: netip.MustParsePrefix(a)})
		}
	}
	l.stations = append(l.stations, s)
}

// configure runs inside the Pod's namespace.
func (l *lab) configure(s *station, addrs []string) error {
	link, err := netlink.LinkByName(s.dev)
	if err != nil {
		return err
	}
	if *datapath == "netdev" { // checksums are not filled in on their way (fact 20)
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		if err := e.Change(s.dev, map[string]bool{"tx-checksum-ip-generic": false}); err != nil {
			return err
		}
	}
	for _, a := range addrs {
		l.addAddr(netlink.AddrAdd, link, a)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, a := range addrs {
		gw := "10.10.0.1"
		if strings.Contains(a, ":") {
			gw = "fd10::1"
		}
		if !strings.HasPrefix(a, "10.10.") && !strings.HasPrefix(a, "fd10:") {
			continue
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.ParseIP(gw), Flags: int(netlink.FLAG_ONLINK)}); err != nil {
			return fmt.Errorf("default route of %s by %s: %w", s.name, gw, err)
		}
	}
	s.conn, err = listen(s.dev)
	return err
}

func (l *lab) addAddr(add func(netlink.Link, *netlink.Addr) error, link netlink.Link, a string) {
	l.t.Helper()
	addr, err := netlink.ParseAddr(a)
	l.ok(err)
	if addr.IP.To4() == nil {
		addr.Flags = unix.IFA_F_NODAD
	}
	l.ok(add(link, addr))
}

// connect starts the OpenFlow client and waits until it is ready.
func (l *lab) connect() {
	l.t.Helper()
	var err error
	l.client, err = ofclient.New(ofclient.Config{
		Dial:       ofclient.DialUnix(l.sw.MgmtSock(bridge)),
		BackoffMax: 200 * time.Millisecond,
		Replay:     func(ctx context.Context, conn *ofclient.Conn) error { return l.flows.Replay(ctx, conn, l.ifaces()) },
	})
	l.ok(err)
	l.flows, err = podflows.New(podflows.Config{Sender: l.client, Node: l.node})
	l.ok(err)
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan error, 1)
	go func() { done <- l.client.Run(ctx) }()
	l.t.Cleanup(func() {
		cancel()
		<-done
	})
	l.ready()
}

// ready waits for a session that is through with its replay.
func (l *lab) ready() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	defer cancel()
	if _, err := l.client.Ports(ctx); err != nil {
		l.t.Fatalf("no ready session: %v (%+v)", err, l.client.Status())
	}
}

func (l *lab) ifaces() []ifstore.Interface {
	var list []ifstore.Interface
	for _, s := range l.stations {
		list = append(list, s.iface)
	}
	return list
}

func (l *lab) pod(name string) *station {
	l.t.Helper()
	if name == "gateway" {
		return l.gateway
	}
	i := slices.IndexFunc(l.stations, func(s *station) bool { return s.name == name })
	if i < 0 {
		l.t.Fatalf("no Pod %q in this lab", name)
	}
	return l.stations[i]
}

func (l *lab) vsctl(args ...string) string {
	l.t.Helper()
	return l.must(l.sw.Vsctl(args...)).(string)
}

func (l *lab) ofport(name string) uint32 {
	l.t.Helper()
	out := l.vsctl("get", "interface", name, "ofport")
	// On a slow machine ovs-vsctl warns that it was slow before it answers.
	n, err := strconv.ParseUint(out[strings.LastIndex(out, "\n")+1:], 10, 16)
	if err != nil {
		l.t.Fatalf("ofport of %s: %v", name, err)
	}
	return uint32(n)
}

// ofportWhen waits in the database until OVS has given that number.
func (l *lab) ofportWhen(name string, number uint32) uint32 {
	l.t.Helper()
	l.vsctl("wait-until", "interface", name, fmt.Sprintf("ofport=%d", number))
	return l.ofport(name)
}

// settle waits until cached decisions of the datapath agree with the flows.
func (l *lab) settle() {
	l.t.Helper()
	l.must(l.sw.Appctl("revalidator/wait"))
}

func (l *lab) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) must(v any, err error) any {
	l.t.Helper()
	l.ok(err)
	return v
}
