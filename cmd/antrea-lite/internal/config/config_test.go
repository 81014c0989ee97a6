package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// load reads a file with that content and the command line.
func load(t *testing.T, yaml string, args ...string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Default()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	c.Bind(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	return c, c.Load(path, flags)
}

func TestDefaultsNeedOnlyARange(t *testing.T) {
	c, err := load(t, "podCIDRs: [10.10.0.0/24]")
	if err != nil {
		t.Fatal(err)
	}
	node, err := c.Check()
	if err != nil {
		t.Fatal(err)
	}
	if got := node.Gateways[0].String(); got != "10.10.0.1" {
		t.Errorf("gateway %s", got)
	}
	if got := c.OpenFlowEndpoint(); got != hostOpenFlow {
		t.Errorf("OpenFlow endpoint %s", got)
	}
}

func TestFlagsWin(t *testing.T) {
	c, err := load(t, `
podCIDRs: [10.10.0.0/24]
mtu: 1400
bridge: br-file
notReadyAfter: 5s
gateway: {name: gw, addresses: [10.10.0.9]}
`, "--mtu", "1450", "--pod-cidrs", "10.20.0.0/24,fd00::/64", "--sync-period=10s", "--gateway-addresses", "10.20.0.7", "-v", "3")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.PodCIDRs = List{"10.20.0.0/24", "fd00::/64"}
	want.MTU, want.Bridge, want.Verbosity = 1450, "br-file", 3
	want.NotReadyAfter, want.SyncPeriod = Duration(5*time.Second), Duration(10*time.Second)
	want.Gateway = Gateway{Name: "gw", Addresses: List{"10.20.0.7"}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	node, err := c.Check()
	if err != nil {
		t.Fatal(err)
	}
	if node.Gateways[0].String() != "10.20.0.7" || node.Gateways[1].String() != "fd00::1" {
		t.Errorf("gateways %v", node.Gateways)
	}
}

// mistake is a file and what the error has to say.
type mistake struct {
	name, yaml string
	words      []string
}

// TestMistakes: each is one message that names the key, the value and, mostly, what would do.
func TestMistakes(t *testing.T) {
	const ok = "podCIDRs: [10.10.0.0/24]\n"
	for _, c := range append(hostMistakes(ok), []mistake{
		{"no range", "bridge: br0", []string{"podCIDRs", "missing", "--pod-cidrs"}},
		{"empty file", "", []string{"podCIDRs", "missing"}},
		{"no YAML", "podCIDRs: [", []string{"YAML"}},
		{"a list", "- a", []string{"YAML"}},
		{"a key twice", ok + "mtu: 1400\nmtu: 1500", []string{"mtu"}},
		{"misspelt", "podCIDR: [10.0.0.0/24]", []string{`"podCIDR"`, `"podCIDRs"`}},
		{"misspelt below", ok + "gateway: {adresses: [10.10.0.1]}", []string{`"gateway.adresses"`, `"gateway.addresses"`}},
		{"unknown", ok + "kubeconfig: /x", []string{`"kubeconfig"`, "known are"}},
		{"wrong type", ok + "mtu: big", []string{"mtu"}},
		{"uplink's bridge is the Pods'", ok + "traffic: {uplinkBridge: br-int}", []string{"traffic.uplinkBridge", "br-int", "br-phy"}},
		{"duration", ok + "syncPeriod: 5", []string{"30s"}},
		{"duration text", ok + "syncPeriod: soon", []string{`"soon"`}},
		{"readiness", ok + "portReadiness: never", []string{"portReadiness", `"never"`, "sync", "async"}},
		{"retry zero", ok + "retryInterval: 0s", []string{"retryInterval", "0s"}},
		{"duration zero", ok + "notReadyAfter: 0s", []string{"notReadyAfter", "0s"}},
		{"bad CIDR", "podCIDRs: [10.10.0.0/33]", []string{"10.10.0.0/33"}},
		{"address only", "podCIDRs: [10.10.0.0]", []string{"10.10.0.0", "10.10.0.0/24"}},
		{"host bits", "podCIDRs: [10.10.0.7/24]", []string{"10.10.0.7/24", "10.10.0.0/24"}},
		{"small", "podCIDRs: [10.10.0.0/31]", []string{"10.10.0.0/31", "/30"}},
		{"small v6", "podCIDRs: ['fd00::/127']", []string{"fd00::/127", "/126"}},
		{"large", "podCIDRs: [10.0.0.0/7]", []string{"10.0.0.0/7"}},
		{"multicast", "podCIDRs: [224.0.0.0/8]", []string{"224.0.0.0/8"}},
		{"link-local", "podCIDRs: ['fe80::/64']", []string{"fe80::/64"}},
		{"loopback", "podCIDRs: [127.0.0.0/8]", []string{"127.0.0.0/8"}},
		{"two of one family", "podCIDRs: [10.10.0.0/24, 10.11.0.0/24]", []string{"10.10.0.0/24", "10.11.0.0/24", "IPv4"}},
		{"gateway no address", ok + "gateway: {addresses: [10.10.0.1/24]}", []string{"10.10.0.1/24"}},
		{"gateway outside", ok + "gateway: {addresses: [10.11.0.1]}", []string{"10.11.0.1", "10.10.0.0/24"}},
		{"gateway's family", ok + "gateway: {addresses: ['fd00::1']}", []string{"fd00::1", "family"}},
		{"gateway twice", ok + "gateway: {addresses: [10.10.0.1, 10.10.0.2]}", []string{"10.10.0.1", "10.10.0.2"}},
		{"gateway broadcast", ok + "gateway: {addresses: [10.10.0.255]}", []string{"10.10.0.255", "broadcast"}},
		{"gateway network", ok + "gateway: {addresses: [10.10.0.0]}", []string{"10.10.0.0", "10.10.0.1"}},
		{"gateway name", ok + "gateway: {name: gateway-of-the-node}", []string{"gateway-of-the-node", "15"}},
		{"gateway is bridge", ok + "gateway: {name: br-int}", []string{"br-int", "antrea-gw0"}},
		{"bridge name", ok + "bridge: a/b", []string{"a/b"}},
		{"host prefix", ok + "hostPrefix: veryl", []string{"veryl", "4"}},
		{"datapath", ok + "datapath: dpdk", []string{"dpdk", "system", "netdev"}},
		{"mtu", ok + "mtu: 100", []string{"mtu", "100", "576"}},
		{"mtu v6", "podCIDRs: ['fd00::/64']\nmtu: 1000", []string{"1000", "IPv6", "1280"}},
		{"mtu large", ok + "mtu: 70000", []string{"70000", "65535"}},
		{"endpoint host name", ok + "ovsdb: tcp:localhost:6640", []string{"tcp:localhost:6640", "127.0.0.1"}},
		{"endpoint away", ok + "openflow: tcp:192.0.2.1:6653", []string{"openflow", "192.0.2.1", "loopback"}},
		{"metrics", ok + "metricsAddress: everywhere", []string{"metricsAddress", "everywhere"}},
		{"metrics port", ok + "metricsAddress: 127.0.0.1:99999", []string{"127.0.0.1:99999"}},
		{"state", ok + "stateDir: leases", []string{"stateDir", "leases"}},
		{"HNS network", ok + "hns: {network: ''}", []string{"hns.network"}},
		{"log file", ok + "logFile: agent.log", []string{"logFile", "agent.log"}},
		{"verbosity", ok + "verbosity: 99", []string{"verbosity", "99"}},
	}...) {
		t.Run(c.name, func(t *testing.T) {
			conf, err := load(t, c.yaml)
			if err == nil {
				_, err = conf.Check()
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than one line", err)
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	c := Default()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	if err := c.Load("/nonexistent/agent.yaml", flags); err == nil || !strings.Contains(err.Error(), "/nonexistent/agent.yaml") {
		t.Errorf("a named file that is missing: %v", err)
	}
}

func TestFlagMistakes(t *testing.T) {
	for _, args := range [][]string{{"--sync-period", "5"}, {"--pod-cidrs", ""}, {"--pod-cidrs", "10.0.0.0/24,,"}, {"--mtu", "x"}} {
		if _, err := load(t, "", args...); err == nil {
			t.Errorf("%v accepted", args)
		}
	}
}

// TestEveryKeyHasAFlag keeps file and flags alike.
func TestEveryKeyHasAFlag(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Default().Bind(flags)
	n := 0
	flags.VisitAll(func(*pflag.Flag) { n++ })
	if want := 31; n != want {
		t.Errorf("%d flags, want %d, one for each key", n, want)
	}
}

// TestLockFile: the lock is of a bridge of one Open vSwitch.
func TestLockFile(t *testing.T) {
	a, b, c := Default(), Default(), Default()
	b.OVSDB = "unix:/other/db.sock"
	c.Bridge = "br-other"
	if a.LockFile() == b.LockFile() || a.LockFile() == c.LockFile() || a.LockFile() != Default().LockFile() {
		t.Errorf("%s %s %s", a.LockFile(), b.LockFile(), c.LockFile())
	}
}
