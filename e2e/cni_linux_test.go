package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// CNI's error codes, and the plugin's own from 100 on, that the scenarios expect.
const (
	codeVersion     = 1
	codeUnknown     = 3
	codeEnvironment = 4
	codeDecoding    = 6
	codeConfig      = 7
	codeNetNS       = 8
	codeTryAgain    = 11
	codeUnavailable = 50
	codeLimited     = 51
	codeAddress     = 101
	codeCheck       = 102
	codeInterface   = 103
	codeDelegated   = 105
)

func TestEveryVersionGetsItsOwnResult(t *testing.T) {
	n := start(t, nil)
	for _, version := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		conf := map[string]any{"cniVersion": version}
		p, err := n.NewPod("v"+strings.ReplaceAll(version, ".", ""), conf)
		if err != nil {
			t.Fatal(err)
		}
		n.pods[p.Name] = p
		out, err := n.Plugin.Run(t.Context(), p.Call("ADD"))
		if err != nil {
			t.Fatalf("ADD %s: %v", version, err)
		}
		var res struct {
			CNIVersion string
			IPs        []struct{ Version string }
		}
		if err := json.Unmarshal(out, &res); err != nil || res.CNIVersion != version || len(res.IPs) != 2 {
			t.Errorf("ADD %s: %v: %s", version, err, out)
		}
		// Up to 0.4.0 an address says its family.
		if old := version < "1"; old != (res.IPs[0].Version == "4") {
			t.Errorf("ADD %s: ips[].version is %q", version, res.IPs[0].Version)
		}
		// The same ADD again answers the same from what is known.
		if err := n.Add(t.Context(), p); err != nil {
			t.Errorf("second ADD %s: %v", version, err)
		}
		n.pingsGateway(p)
		err = n.Check(t.Context(), p)
		if version == "0.3.1" {
			n.wantError("CHECK 0.3.1", err, codeVersion, "0.3.1", "0.4.0")
		} else if err != nil {
			t.Errorf("CHECK %s: %v", version, err)
		}
		n.unplug(p)
	}
	for _, version := range []string{"", "0.1.0", "0.2.0", "2.0.0", "x"} {
		p, err := n.NewPod("old", map[string]any{"cniVersion": version})
		if err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"ADD", "CHECK", "DEL"} {
			_, err := n.Plugin.Run(t.Context(), p.Call(verb))
			n.wantError(fmt.Sprintf("%s with version %q", verb, version), err, codeVersion, "0.3.1", "0.4.0", "1.0.0", "1.1.0")
		}
		if err := nettest.DeleteNS(p.NetNS); err != nil {
			t.Error(err)
		}
	}
	out, err := n.Plugin.Run(t.Context(), lab.Call{Command: "VERSION", Stdin: []byte(`{"cniVersion":"1.0.0"}`)})
	var versions struct{ SupportedVersions []string }
	if err != nil || json.Unmarshal(out, &versions) != nil || strings.Join(versions.SupportedVersions, " ") != "0.3.1 0.4.0 1.0.0 1.1.0" {
		t.Errorf("VERSION: %v: %s", err, out)
	}
}

// Each mistake gets one clear error that names the value, and nothing is left.
func TestBadInput(t *testing.T) {
	n := start(t, nil)
	taken := n.plug("taken", nil)
	before, err := n.State()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		change func(c *lab.Call)
		conf   map[string]any
		code   uint
		words  []string
	}{
		"no JSON":              {change: func(c *lab.Call) { c.Stdin = []byte("{nonsense") }, code: codeDecoding},
		"empty stdin":          {change: func(c *lab.Call) { c.Stdin = nil }, code: codeDecoding},
		"a list":               {change: func(c *lab.Call) { c.Stdin = []byte("[]") }, code: codeDecoding},
		"no container id":      {change: func(c *lab.Call) { c.Unset = []string{"CNI_CONTAINERID"} }, code: codeEnvironment, words: []string{"CNI_CONTAINERID"}},
		"no netns":             {change: func(c *lab.Call) { c.Unset = []string{"CNI_NETNS"} }, code: codeEnvironment, words: []string{"CNI_NETNS"}},
		"no ifname":            {change: func(c *lab.Call) { c.Unset = []string{"CNI_IFNAME"} }, code: codeEnvironment, words: []string{"CNI_IFNAME"}},
		"id that is a path":    {change: func(c *lab.Call) { c.ContainerID = "../../etc" }, code: codeEnvironment, words: []string{"../../etc"}},
		"id with a blank":      {change: func(c *lab.Call) { c.ContainerID = "a b" }, code: codeEnvironment, words: []string{"a b"}},
		"ifname too long":      {change: func(c *lab.Call) { c.IfName = "sixteen-letters-" }, code: codeEnvironment, words: []string{"sixteen-letters-"}},
		"ifname with a slash":  {change: func(c *lab.Call) { c.IfName = "a/b" }, code: codeEnvironment, words: []string{"a/b"}},
		"unknown command":      {change: func(c *lab.Call) { c.Command = "MOVE" }, code: codeEnvironment, words: []string{"MOVE", "ADD"}},
		"netns gone":           {change: func(c *lab.Call) { c.NetNS = "/run/netns/gone" }, code: codeNetNS, words: []string{"/run/netns/gone"}},
		"netns is no netns":    {change: func(c *lab.Call) { c.NetNS = "/etc" }, code: codeNetNS, words: []string{"/etc"}},
		"the host's netns":     {change: func(c *lab.Call) { c.NetNS = "/proc/1/ns/net" }, code: codeNetNS, words: []string{"/proc/1/ns/net", "host"}},
		"args no pairs":        {change: func(c *lab.Call) { c.Args = "nonsense" }, code: codeEnvironment, words: []string{"nonsense"}},
		"vlan too high":        {conf: map[string]any{"vlan": 4095}, code: codeConfig, words: []string{"vlan", "4095", "4094"}},
		"vlan negative":        {conf: map[string]any{"vlan": -1}, code: codeConfig, words: []string{"vlan", "-1"}},
		"vlan no number":       {conf: map[string]any{"vlan": "ten"}, code: codeConfig, words: []string{"vlan", "string"}},
		"mtu too small":        {conf: map[string]any{"mtu": 68}, code: codeConfig, words: []string{"mtu", "68"}},
		"mtu below IPv6's":     {conf: map[string]any{"mtu": 1000}, code: codeConfig, words: []string{"1000", "1280"}},
		"address no address":   {conf: runtime("ips", []string{"10.10.0.999"}), code: codeConfig, words: []string{"10.10.0.999"}},
		"address out of range": {conf: runtime("ips", []string{"192.0.2.9"}), code: codeAddress, words: []string{"192.0.2.9"}},
		"address taken":        {conf: runtime("ips", []string{taken.Addr(false).String()}), code: codeAddress, words: []string{taken.Addr(false).String()}},
		"the gateway's":        {conf: runtime("ips", []string{taken.Gateway(false).String()}), code: codeAddress, words: []string{taken.Gateway(false).String()}},
		"MAC no MAC":           {conf: runtime("mac", "not-a-mac"), code: codeConfig, words: []string{"not-a-mac"}},
		"MAC multicast":        {conf: runtime("mac", "01:00:5e:00:00:01"), code: codeConfig, words: []string{"01:00:5e:00:00:01"}},
		"no agent there":       {conf: map[string]any{"agentSocket": "/run/nobody.sock"}, code: codeTryAgain, words: []string{"/run/nobody.sock"}},
		"relative socket":      {conf: map[string]any{"agentSocket": "cni.sock"}, code: codeConfig, words: []string{"cni.sock"}},
		"IPAM plugin missing":  {conf: map[string]any{"ipam": map[string]any{"type": "no-such-ipam"}}, code: codeDelegated, words: []string{"no-such-ipam"}},
		"IPAM plugin a path":   {conf: map[string]any{"ipam": map[string]any{"type": "../evil"}}, code: codeConfig, words: []string{"../evil"}},
		"no name":              {conf: map[string]any{"name": ""}, code: codeConfig, words: []string{"name"}},
	}
	p, err := n.NewPod("bad", nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range cases {
		call := p.Call("ADD")
		call.Stdin = n.NetConf(c.conf)
		if c.change != nil {
			c.change(&call)
		}
		_, err := n.Plugin.Run(t.Context(), call)
		n.wantError(what, err, c.code, c.words...)
		if err == nil {
			if err := n.Del(t.Context(), p); err != nil {
				t.Error(err)
			}
		}
	}
	if err := nettest.DeleteNS(p.NetNS); err != nil {
		t.Fatal(err)
	}
	n.settled("bad input leaves nothing", func() error {
		now, err := n.State()
		return orDiff(err, now, before)
	})
}

// runtime is a configuration with a capability's argument.
func runtime(key string, value any) map[string]any {
	return map[string]any{"runtimeConfig": map[string]any{key: value}}
}

func TestDelOfAnythingSucceeds(t *testing.T) {
	n := start(t, nil)
	p := n.plug("p", nil)
	delete(n.pods, p.Name)
	for range 3 {
		if err := n.Del(t.Context(), p); err != nil {
			t.Error(err)
		}
	}
	_, err := n.Plugin.Run(t.Context(), func() lab.Call {
		c := p.Call("CHECK")
		c.Stdin = n.NetConf(map[string]any{"prevResult": p.Result})
		return c
	}())
	n.wantError("CHECK after DEL", err, codeUnknown, p.ContainerID)
	if err := nettest.DeleteNS(p.NetNS); err != nil {
		t.Fatal(err)
	}
	n.nothingLeft()

	// The namespace is gone first, as after a crash of the runtime; its path is passed, or none.
	for _, netns := range []string{"keep", ""} {
		gone := n.plug("gone", nil)
		delete(n.pods, gone.Name)
		if err := nettest.DeleteNS(gone.NetNS); err != nil {
			t.Fatal(err)
		}
		c := gone.Call("DEL")
		if netns == "" {
			c.NetNS = ""
		}
		if _, err := n.Plugin.Run(t.Context(), c); err != nil {
			t.Errorf("DEL with the namespace gone, CNI_NETNS %q: %v", c.NetNS, err)
		}
		n.nothingLeft()
	}
	for _, id := range []string{"never-seen", strings.Repeat("a", 64)} {
		c := p.Call("DEL")
		c.ContainerID = id
		if _, err := n.Plugin.Run(t.Context(), c); err != nil {
			t.Errorf("DEL of %s: %v", id, err)
		}
	}
}

func TestTwoSandboxesOfOnePod(t *testing.T) {
	n := start(t, nil)
	peer := n.plug("peer", nil)
	old := n.plug("sandbox1", nil)
	fresh, err := n.NewPod("sandbox2", nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh.Args = old.Args
	n.pods[fresh.Name] = fresh
	if err := n.Add(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	n.pings(peer, old, fresh)
	n.unplug(old)
	n.pings(peer, fresh)
	if err := n.Check(t.Context(), fresh); err != nil {
		t.Errorf("CHECK of the newer sandbox: %v", err)
	}
}

func TestGCKeepsOnlyWhatIsNamed(t *testing.T) {
	n := start(t, nil)
	keep, lost1, lost2 := n.plug("keep", nil), n.plug("lost1", nil), n.plug("lost2", nil)
	valid := []map[string]string{{"containerID": keep.ContainerID, "ifname": keep.IfName}}
	_, err := n.Plugin.Run(t.Context(), lab.Call{Command: "GC", Stdin: n.NetConf(map[string]any{"cni.dev/valid-attachments": valid})})
	if err != nil {
		t.Fatalf("GC: %v", err)
	}
	for _, p := range []*lab.Pod{lost1, lost2} {
		delete(n.pods, p.Name)
		if err := nettest.DeleteNS(p.NetNS); err != nil {
			t.Error(err)
		}
	}
	n.pingsGateway(keep)
	ports, err := n.Switch.Vsctl("list-ports", lab.Bridge)
	if err != nil || strings.Contains(ports, lost1.HostInterface()) || !strings.Contains(ports, keep.HostInterface()) {
		t.Errorf("ports after GC: %v: %s", err, ports)
	}
	leases, err := n.Leases()
	if err != nil || len(leases) != 2 {
		t.Errorf("leases after GC: %v %v, want the two of %s", err, leases, keep.Name)
	}
}

func TestRuntimeAsksForAddressesAndMAC(t *testing.T) {
	n := start(t, nil)
	p := n.plug("wish", map[string]any{"runtimeConfig": map[string]any{
		"ips": []string{"10.10.0.77/22", "fd00:10::77"}, "mac": "02:11:22:33:44:55",
	}})
	if got := p.Addr(false); got != netip.MustParseAddr("10.10.0.77") {
		t.Errorf("IPv4 address %s", got)
	}
	if got := p.Addr(true); got != netip.MustParseAddr("fd00:10::77") {
		t.Errorf("IPv6 address %s", got)
	}
	if got := n.mac(p); got != (lab.MAC{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}) {
		t.Errorf("MAC % x", got)
	}
	n.pingsGateway(p)
	n.pings(p, n.plug("other", nil))
}

func TestInterfaceWithoutAddresses(t *testing.T) {
	n := start(t, nil)
	p := n.plug("l2", map[string]any{"ipam": map[string]any{}})
	if len(p.Result.IPs) != 0 {
		t.Errorf("addresses %v, want none", p.Result.IPs)
	}
	if err := n.Check(t.Context(), p); err != nil {
		t.Errorf("CHECK: %v", err)
	}
}

// A second plugin in a chain passes on what the first one made.
func TestChainedAfterAnotherPlugin(t *testing.T) {
	n := start(t, nil)
	p := n.plug("chained", map[string]any{"prevResult": map[string]any{
		"cniVersion": "1.0.0",
		"interfaces": []any{map[string]any{"name": "other0", "sandbox": "/run/netns/chained"}},
		"ips":        []any{map[string]any{"address": "192.0.2.5/24", "interface": 0}},
		"dns":        map[string]any{"nameservers": []string{"192.0.2.1"}},
	}})
	if len(p.Result.Interfaces) != 3 || p.Result.Interfaces[0].Name != "other0" || len(p.Result.IPs) != 3 || len(p.Result.DNS.Nameservers) != 1 {
		t.Errorf("result %+v does not pass on the previous one", p.Result)
	}
	if i := p.Result.IPs[1].Interface; i == nil || *i != 2 {
		t.Errorf("our addresses belong to interface %v, want 2", i)
	}
	if err := n.Check(t.Context(), p); err != nil {
		t.Errorf("CHECK: %v", err)
	}
}

func TestTwoInterfacesOfOnePod(t *testing.T) {
	n := start(t, nil)
	p := n.plug("twolegs", nil)
	second := *p
	second.IfName = "net1"
	second.Conf = n.NetConf(map[string]any{"ipam": map[string]any{}, "vlan": 7})
	if err := n.Add(t.Context(), &second); err != nil {
		t.Fatal(err)
	}
	for _, leg := range []*lab.Pod{p, &second} {
		if err := n.Check(t.Context(), leg); err != nil {
			t.Errorf("CHECK %s: %v", leg.IfName, err)
		}
	}
	if err := n.Del(t.Context(), &second); err != nil {
		t.Error(err)
	}
	n.pingsGateway(p)
}
