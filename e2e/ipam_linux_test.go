package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/internal/nettest"
)

// fakeIPAM is the name under which this program acts as an IPAM plugin.
const fakeIPAM = "fake-ipam"

// actAsIPAM is an IPAM plugin that gives what ipam.give in the configuration
// holds and writes down its calls beside itself.
func actAsIPAM() int {
	stdin, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 1
	}
	f, err := os.OpenFile(os.Args[0]+".calls", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 1
	}
	defer f.Close()
	fmt.Fprintln(f, os.Getenv("CNI_COMMAND"), os.Getenv("CNI_CONTAINERID"), os.Getenv("CNI_IFNAME"))
	if os.Getenv("CNI_COMMAND") != "ADD" {
		return 0
	}
	if strings.Contains(string(stdin), `"fail"`) {
		fmt.Println(`{"cniVersion":"1.0.0","code":77,"msg":"no address for you","details":"by request"}`)
		return 1
	}
	fmt.Println(`{"cniVersion":"1.0.0","ips":[{"address":"10.10.3.33/22","gateway":"10.10.0.1"}],"routes":[{"dst":"0.0.0.0/0"}],"dns":{"nameservers":["10.96.0.10"]}}`)
	return 0
}

// installFakeIPAM puts this program into a directory of plugins and returns a
// function that reads and forgets the calls so far.
func (n *node) installFakeIPAM() (calls func() []string) {
	n.t.Helper()
	path := filepath.Join(n.Dir, fakeIPAM)
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(path, self, 0o755)
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.Plugin.Dirs = n.Dir
	return func() []string {
		n.t.Helper()
		raw, err := os.ReadFile(path + ".calls")
		if err != nil && !os.IsNotExist(err) {
			n.t.Fatal(err)
		}
		if err == nil {
			if err := os.Remove(path + ".calls"); err != nil {
				n.t.Fatal(err)
			}
		}
		var list []string
		for line := range strings.Lines(string(raw)) {
			list = append(list, strings.TrimSpace(line))
		}
		return list
	}
}

func TestDelegatedIPAM(t *testing.T) {
	n := start(t, nil)
	calls := n.installFakeIPAM()
	conf := map[string]any{"ipam": map[string]any{"type": fakeIPAM}}
	p := n.plug("p", conf)
	if got := p.Addr(false).String(); got != "10.10.3.33" || len(p.Result.IPs) != 1 || len(p.Result.DNS.Nameservers) != 1 {
		t.Errorf("result %+v is not what the IPAM plugin gave", p.Result)
	}
	n.pingsGateway(p)
	n.pings(p, n.plug("other", nil))
	if err := n.Check(t.Context(), p); err != nil {
		t.Errorf("CHECK: %v", err)
	}
	id := p.ContainerID + " " + p.IfName
	n.unplug(p)
	if got, want := calls(), []string{"ADD " + id, "CHECK " + id, "DEL " + id}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
	if leases, err := n.Leases(); err != nil || len(leases) != 2 {
		t.Errorf("leases %v %v, want the other Pod's two", leases, err)
	}

	// The IPAM plugin fails: its own words come out, and it is asked to free.
	bad, err := n.NewPod("bad", map[string]any{"ipam": map[string]any{"type": fakeIPAM, "fail": true}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Plugin.Run(t.Context(), bad.Call("ADD"))
	if err == nil || !strings.Contains(err.Error(), "no address for you") {
		t.Errorf("ADD with a failing IPAM plugin: %v", err)
	}
	id = bad.ContainerID + " " + bad.IfName
	if got, want := calls(), []string{"ADD " + id, "DEL " + id}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
	// The agent fails after the IPAM plugin gave: the address goes back exactly once.
	if err := n.StopAgent(); err != nil {
		t.Fatal(err)
	}
	late := bad
	late.Conf = n.NetConf(conf)
	_, err = n.Plugin.Run(t.Context(), late.Call("ADD"))
	n.wantError("ADD without an agent", err, codeTryAgain)
	if got, want := calls(), []string{"ADD " + id, "DEL " + id}; !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
	if err := nettest.DeleteNS(bad.NetNS); err != nil {
		t.Error(err)
	}
	if err := n.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
}
