package podflows_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var testNode = podflows.Node{
	Gateway:  podflows.Gateway{OFPort: 1, MAC: ifstore.MAC{2, 0, 0, 0, 0, 1}, Addrs: []netip.Addr{ip("10.10.0.1"), ip("fd10::1")}},
	PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.10.0.0/24"), netip.MustParsePrefix("fd10::/64")},
}

func newInstaller(t testing.TB, sender ofclient.Sender) *podflows.Installer {
	t.Helper()
	i, err := podflows.New(podflows.Config{Sender: sender, Node: testNode})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func iface(name string, port uint32, vlan uint16, addrs ...string) ifstore.Interface {
	i := ifstore.Interface{
		Key: ifstore.Key{ContainerID: name, IfName: "eth0"}, Pod: ifstore.Pod{Namespace: "ns", Name: name}, Name: "h-" + name,
		OFPort: port, MAC: ifstore.MAC{0x0a, 0x58, 0, 0, byte(port >> 8), byte(port)}, VLAN: vlan, Created: time.Unix(int64(port), 0),
	}
	for _, a := range addrs {
		i.Addresses = append(i.Addresses, ifstore.Address{Prefix: netip.MustParsePrefix(a)})
	}
	return i
}

func TestGolden(t *testing.T) {
	i := newInstaller(t, nothing{})
	files := map[string][]ofp.FlowMod{"node": i.NodeFlows()}
	for _, f := range []ifstore.Interface{
		iface("ipv4", 3, 0, "10.10.0.3/24"),
		iface("ipv6", 4, 0, "fd10::4/64"),
		iface("dual", 53, 0, "10.10.0.53/24", "fd10::53/64"),
		iface("vlan", 6, 10, "10.10.0.6/24", "fd10::6/64"),
		iface("layer2", 7, 20),
	} {
		mods, err := i.Flows(f)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Pod.Name] = mods
	}
	for name, mods := range files {
		var b strings.Builder
		for _, m := range mods {
			fmt.Fprintf(&b, "%-14s %s\n", podflows.TableName(m.Table), m)
		}
		path := filepath.Join("testdata", name+".flows")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), b.String()); d != "" {
			t.Errorf("%s (-golden +got; go test -update rewrites it):\n%s", path, d)
		}
	}
}

func TestNumbersThatAreNoneAreRefused(t *testing.T) {
	i := newInstaller(t, nothing{})
	for _, n := range []uint32{0, 0xff00, 0xffff, 65535, 0x10000, ofp.PortLocal, ofp.PortAny, 0xffffffff} {
		mods, err := i.Flows(iface("a", n, 0, "10.10.0.3/24"))
		if mods != nil || !errors.Is(err, podnet.ErrNoNumber) {
			t.Errorf("port %#x: %d flows, error %v; want ErrNoNumber", n, len(mods), err)
		}
		if err := i.Install(t.Context(), []ifstore.Interface{iface("a", n, 0)})[0]; !errors.Is(err, podnet.ErrNoNumber) {
			t.Errorf("install port %#x: %v, want ErrNoNumber", n, err)
		}
		if err := i.Uninstall(t.Context(), []ifstore.Interface{iface("a", n, 0)})[0]; err != nil {
			t.Errorf("uninstall port %#x: %v; it has no flows, so nothing to fail", n, err)
		}
	}
	for _, n := range []uint32{1, 0xfeff} {
		if _, err := i.Flows(iface("a", n, 0, "10.10.0.3/24")); err != nil {
			t.Errorf("port %#x: %v", n, err)
		}
	}
}

func TestBadRecordsAreRefused(t *testing.T) {
	i := newInstaller(t, nothing{})
	for name, change := range map[string]func(*ifstore.Interface){
		"no MAC":              func(f *ifstore.Interface) { f.MAC = ifstore.MAC{} },
		"group MAC":           func(f *ifstore.Interface) { f.MAC[0] |= 1 },
		"VLAN 4095":           func(f *ifstore.Interface) { f.VLAN = 4095 },
		"address 0.0.0.0":     func(f *ifstore.Interface) { f.Addresses[0].Prefix = netip.MustParsePrefix("0.0.0.0/0") },
		"multicast address":   func(f *ifstore.Interface) { f.Addresses[0].Prefix = netip.MustParsePrefix("224.0.0.1/4") },
		"loopback address":    func(f *ifstore.Interface) { f.Addresses[0].Prefix = netip.MustParsePrefix("127.0.0.1/8") },
		"IPv6 multicast":      func(f *ifstore.Interface) { f.Addresses[0].Prefix = netip.MustParsePrefix("ff02::1/64") },
		"address that is not": func(f *ifstore.Interface) { f.Addresses[0].Prefix = netip.Prefix{} },
	} {
		f := iface("a", 3, 0, "10.10.0.3/24")
		change(&f)
		if mods, err := i.Flows(f); mods != nil || !errors.Is(err, podnet.ErrBadRequest) || !strings.Contains(err.Error(), "ns/a") {
			t.Errorf("%s: %d flows, error %v; want ErrBadRequest that names the Pod", name, len(mods), err)
		}
	}
	for name, node := range map[string]podflows.Node{
		"gateway number":  {Gateway: podflows.Gateway{OFPort: ofp.PortLocal, MAC: testNode.Gateway.MAC}},
		"gateway MAC":     {Gateway: podflows.Gateway{OFPort: 1}},
		"gateway address": {Gateway: podflows.Gateway{Addrs: []netip.Addr{{}}}},
		"Pod CIDR":        {PodCIDRs: []netip.Prefix{{}}},
		"whole Pod CIDR":  {PodCIDRs: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}},
	} {
		if _, err := podflows.New(podflows.Config{Sender: nothing{}, Node: node}); err == nil {
			t.Errorf("New takes a bad %s", name)
		}
		if err := i.SetNode(t.Context(), node); err == nil {
			t.Errorf("SetNode takes a bad %s", name)
		}
	}
	if _, err := podflows.New(podflows.Config{}); err == nil {
		t.Error("New takes a Config without Sender")
	}
}

// Interfaces with nothing in common never write the same flow, nor do they write
// one of the node's (fact 16).
func TestDistinctInterfacesNeverShareAMatch(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	i := newInstaller(t, nothing{})
	owner := map[ofp.FlowKey]string{}
	claim := func(who string, mods []ofp.FlowMod) {
		t.Helper()
		for n := range mods {
			if other, taken := owner[mods[n].Key()]; taken {
				t.Fatalf("%s and %s both write %v", other, who, mods[n])
			}
			owner[mods[n].Key()] = who
		}
	}
	claim("the node", i.NodeFlows())
	ports := r.Perm(0xfeff)[:600]
	for n, p := range ports {
		vlan := uint16(0)
		if r.IntN(2) == 0 {
			vlan = uint16(1 + r.IntN(4094))
		}
		var addrs []string
		for range r.IntN(3) {
			addrs = append(addrs, fmt.Sprintf("10.%d.%d.%d/8", 64+n>>8, n&0xff, 1+len(addrs)))
		}
		for range r.IntN(3) {
			addrs = append(addrs, fmt.Sprintf("fd10:%x:%x::%x/64", n, r.IntN(1<<16), 1+len(addrs)))
		}
		f := iface(fmt.Sprintf("pod%d", n), uint32(p+1), vlan, addrs...)
		mods, err := i.Flows(f)
		if err != nil {
			t.Fatal(err)
		}
		claim(f.Pod.Name, mods)
	}
}

// The kernel datapath's cache ignores the fields of neighbour discovery unless
// type and code are both matched (seen in the guest: questions for the gateway
// went to the Pod that was asked for before).
func TestNeighbourDiscoveryIsMatchedWithItsCode(t *testing.T) {
	i := newInstaller(t, nothing{})
	mods := i.NodeFlows()
	for _, f := range []ifstore.Interface{iface("a", 3, 0, "fd10::3/64"), iface("b", 4, 0)} {
		more, err := i.Flows(f)
		if err != nil {
			t.Fatal(err)
		}
		mods = append(mods, more...)
	}
	for _, m := range mods {
		has := map[ofp.FieldID]bool{}
		for _, f := range m.Match {
			has[f.ID()] = true
		}
		if (has[ofp.FieldNDTarget] || has[ofp.FieldNDSLL] || has[ofp.FieldNDTLL]) && !has[ofp.FieldICMPv6Code] {
			t.Errorf("no icmp_code in %v", m)
		}
	}
}

// A port's flows in its chain match exactly the places before its own.
func TestFloodChainMatchesEveryEarlierPlace(t *testing.T) {
	i := newInstaller(t, nothing{})
	for _, port := range []uint32{1, 15, 16, 17, 31, 32, 100, 255, 1000, 4095, 4096, 0x7fff, 0x8000, 0xfe00, 0xfeff} {
		mods, err := i.Flows(iface("a", port, 0))
		if err != nil {
			t.Fatal(err)
		}
		hits := map[uint32]int{}
		for _, m := range mods {
			if m.Table != podflows.TableFloodChain {
				continue
			}
			for pos := range uint32(0x10000) {
				if matchesReg(m.Match, 5, pos) {
					hits[pos]++
				}
			}
		}
		chain, place := port%16<<12, port/16+1
		want := map[uint32]int{}
		for before := range place {
			want[chain|before] = 1
		}
		if !maps.Equal(hits, want) {
			t.Errorf("port %d: %d places match, want the %d from %#x on", port, len(hits), len(want), chain)
		}
	}
}

func matchesReg(m ofp.Match, reg int, value uint32) bool {
	for _, f := range m {
		if f.ID() != ofp.RegID(reg) {
			continue
		}
		for n, want := range f.Value() {
			mask := byte(0xff)
			if f.Masked() {
				mask = f.Mask()[n]
			}
			if byte(value>>(8*(3-n)))&mask != want {
				return false
			}
		}
	}
	return true
}

func TestTablesAreInOrderAndNamed(t *testing.T) {
	list := podflows.Tables()
	if !slices.IsSortedFunc(list, func(a, b podflows.Table) int { return int(a.ID) - int(b.ID) }) {
		t.Error("the tables are not in the order of their numbers: packets only move up")
	}
	known := map[uint8]bool{}
	for _, tab := range list {
		known[tab.ID] = true
		if tab.Name == "" || tab.Doc == "" || podflows.TableName(tab.ID) != tab.Name {
			t.Errorf("table %d: %+v", tab.ID, tab)
		}
	}
	for id, want := range map[uint8]string{42: "EgressPolicy+2", 79: "IngressPolicy+9", 200: "table 200"} {
		if got := podflows.TableName(id); got != want {
			t.Errorf("table %d is called %q, want %q", id, got, want)
		}
	}
	i := newInstaller(t, nothing{})
	mods := i.NodeFlows()
	for _, f := range []ifstore.Interface{iface("a", 3, 0, "10.10.0.3/24", "fd10::3/64"), iface("b", 4, 10), iface("c", 5, 10, "10.10.0.5/24")} {
		more, err := i.Flows(f)
		if err != nil {
			t.Fatal(err)
		}
		mods = append(mods, more...)
	}
	for _, m := range mods {
		if !known[m.Table] || !podflows.OwnedCookie(m.Cookie) {
			t.Errorf("flow in an unknown table or with a foreign cookie: %v", m)
		}
		for _, in := range m.Instructions {
			if next, ok := in.(ofp.GotoTable); ok && (uint8(next) <= m.Table || !known[uint8(next)]) {
				t.Errorf("flow leads nowhere or back: %v", m)
			}
		}
	}
}

// nothing is a Sender that takes everything.
type nothing struct{}

func (nothing) Apply(_ context.Context, groups []ofclient.Group) []error {
	return make([]error, len(groups))
}
func (nothing) Send(context.Context, ...ofp.Message) error { return nil }
func (nothing) FlowStats(context.Context, ofp.FlowStatsRequest) ([]ofp.FlowStats, error) {
	return nil, nil
}
func (nothing) Ports(context.Context) ([]ofp.PortDesc, error) { return nil, nil }

// docs/pipeline.md lists the tables for people; this keeps it from going stale.
func TestThePageListsTheTables(t *testing.T) {
	page, err := os.ReadFile("../../docs/pipeline.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tab := range podflows.Tables() {
		if row := strings.ReplaceAll(fmt.Sprintf("| %d | %s | %s | %s |", tab.ID, tab.Name, tab.Doc, tab.Miss), "|  |", "| |"); !strings.Contains(string(page), row) {
			t.Errorf("docs/pipeline.md lacks the row\n%s", row)
		}
	}
}
