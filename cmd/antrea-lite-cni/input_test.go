package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

type badInput struct {
	name, verb, conf string // in conf, members are added to a good configuration; "=" replaces it
	env              map[string]string
	code             uint
	words            []string
}

// TestBadInput demands one clear error for every kind of bad input, and that the agent is not asked.
func TestBadInput(t *testing.T) {
	ok := map[string]string{}
	for _, c := range append(badNetNS(), []badInput{
		{"no stdin", "ADD", "=", ok, 6, []string{"stdin", "JSON"}},
		{"garbage", "ADD", "={nope", ok, 6, []string{"stdin", "invalid character"}},
		{"half", "DEL", `={"cniVersion": "1.0.0", "na`, ok, 6, []string{"stdin"}},
		{"a list", "ADD", "=[]", ok, 6, []string{"stdin"}},
		{"no name", "ADD", `={"cniVersion": "1.0.0", "type": "x"}`, ok, 7, []string{"name"}},
		{"bad name", "ADD", `={"cniVersion": "1.0.0", "name": "a/b"}`, ok, 7, []string{"a/b"}},
		{"vlan is text", "ADD", `"vlan": "ten"`, ok, 7, []string{"vlan", "number"}},
		{"vlan 4095", "ADD", `"vlan": 4095`, ok, 7, []string{"vlan", "4095", "4094"}},
		{"vlan -1", "ADD", `"vlan": -1`, ok, 7, []string{"vlan", "-1"}},
		{"mtu 10", "ADD", `"mtu": 10`, ok, 7, []string{"mtu", "10", "576"}},
		{"mtu 70000", "ADD", `"mtu": 70000`, ok, 7, []string{"mtu", "70000"}},
		{"relative socket", "ADD", `"agentSocket": "run/s"`, ok, 7, []string{"run/s", "absolute"}},
		{"timeout", "ADD", `"timeoutSeconds": -5`, ok, 7, []string{"timeoutSeconds", "-5"}},
		{"timeout over an hour", "ADD", `"timeoutSeconds": 3601`, ok, 7, []string{"timeoutSeconds", "3601", "3600"}},
		{"timeout that overflows", "ADD", `"timeoutSeconds": 4611686018427387904`, ok, 7, []string{"timeoutSeconds", "4611686018427387904"}},
		{"ipam is text", "ADD", `"ipam": "host-local"`, ok, 7, []string{"ipam", "object"}},
		{"wanted ip", "ADD", `"runtimeConfig": {"ips": ["10.0.0.300"]}`, ok, 7, []string{"10.0.0.300", "runtimeConfig"}},
		{"prevResult", "ADD", `"prevResult": {"cniVersion": "7.0.0"}`, ok, 7, []string{"prevResult", "7.0.0"}},
		{"prevResult is text", "ADD", `"prevResult": "x"`, ok, 7, []string{"prevResult"}},
		{"check without prevResult", "CHECK", "", ok, 7, []string{"prevResult"}},
		{"check of another", "CHECK", `"prevResult": {"cniVersion": "1.0.0", "interfaces": [{"name": "eth1", "sandbox": "/x"}]}`, ok, 7, []string{"eth0", sandbox}},
		{"gc without list", "GC", "", ok, 7, []string{"cni.dev/valid-attachments"}},
		{"no container id", "ADD", "", map[string]string{"CNI_CONTAINERID": "-"}, 4, []string{"CNI_CONTAINERID"}},
		{"no container id", "DEL", "", map[string]string{"CNI_CONTAINERID": ""}, 4, []string{"CNI_CONTAINERID"}},
		{"no netns", "ADD", "", map[string]string{"CNI_NETNS": "-"}, 4, []string{"CNI_NETNS"}},
		{"no netns", "CHECK", "", map[string]string{"CNI_NETNS": ""}, 4, []string{"CNI_NETNS"}},
		{"no ifname", "ADD", "", map[string]string{"CNI_IFNAME": "-"}, 4, []string{"CNI_IFNAME"}},
		{"no path", "ADD", "", map[string]string{"CNI_PATH": "-"}, 4, []string{"CNI_PATH"}},
		{"container id", "ADD", "", map[string]string{"CNI_CONTAINERID": "../etc"}, 4, []string{"../etc"}},
		{"long ifname", "ADD", "", map[string]string{"CNI_IFNAME": "eth0123456789012"}, 4, []string{"eth0123456789012", "15"}},
		{"ifname", "ADD", "", map[string]string{"CNI_IFNAME": "a/b"}, 4, []string{"a/b"}},
		{"ifname dot", "DEL", "", map[string]string{"CNI_IFNAME": ".."}, 4, []string{".."}},
		{"no command", "", "", map[string]string{"CNI_COMMAND": "UPDATE"}, 4, []string{"UPDATE", "STATUS"}},
		{"args", "ADD", "", map[string]string{"CNI_ARGS": "K8S_POD_NAME"}, 4, []string{"CNI_ARGS", "K8S_POD_NAME"}},
		{"ipam path", "ADD", `"ipam": {"type": "../sh"}`, ok, 7, []string{"../sh", "CNI_PATH"}},
		{"ipam missing", "ADD", `"ipam": {"type": "dhcp"}`, ok, 105, []string{"dhcp", "/nonexistent"}},
	}...) {
		t.Run(c.name+" "+c.verb, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			conf := a.conf("1.1.0", c.conf)
			if len(c.conf) > 0 && c.conf[0] == '=' {
				conf = c.conf[1:]
			}
			_, err := call{verb: c.verb, conf: conf, env: c.env}.run(t)
			wantError(t, err, c.code, c.words...)
			if len(a.requests) != 0 {
				t.Errorf("the agent was asked: %v", a.requests)
			}
		})
	}
}

// TestWithoutCommand is what a curious user sees.
func TestWithoutCommand(t *testing.T) {
	cmd := call{env: map[string]string{"CNI_COMMAND": "-"}}.command(t)
	out, err := cmd.CombinedOutput()
	if err != nil || !cmp.Equal(string(out), "CNI plugin antrea-lite-cni of antrea-lite: plugs Pods into Open vSwitch through the node agent\nCNI protocol versions supported: 0.3.1, 0.4.0, 1.0.0, 1.1.0\n") {
		t.Errorf("%v %q", err, out)
	}
}

// TestRequest checks what reaches the agent.
func TestRequest(t *testing.T) {
	base := cniapi.Request{Attachment: cniapi.Attachment{ContainerID: "c1", IfName: "eth0"}, NetNS: sandbox, Network: "net", TimeoutMillis: 90000}
	k8s := "IgnoreUnknown=1;K8S_POD_NAMESPACE=ns;K8S_POD_NAME=web-0;K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u1;SOMETHING=else=more"
	addrs := func(s ...string) (out []netip.Addr) {
		for _, a := range s {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	for _, c := range []struct {
		name, more, args string
		want             func(*cniapi.Request)
	}{
		{"plain", "", "", func(*cniapi.Request) {}},
		{"kubernetes", "", k8s, func(r *cniapi.Request) { r.Pod = cniapi.Pod{Namespace: "ns", Name: "web-0", UID: "u1"} }},
		{"kubernetes without uid", "", "K8S_POD_NAMESPACE=ns;K8S_POD_NAME=web-0", func(r *cniapi.Request) { r.Pod = cniapi.Pod{Namespace: "ns", Name: "web-0"} }},
		{"keys", `"vlan": 10, "mtu": 1400, "timeoutSeconds": 5, "unknown": {"a": 1}`, "", func(r *cniapi.Request) { r.VLAN, r.MTU, r.TimeoutMillis = 10, 1400, 5000 }},
		{"host device", `"hostDevice": "tap0"`, "", func(r *cniapi.Request) { r.HostDevice = "tap0" }},
		{"host device of one container", `"hostDevice": "tap0", "args": {"cni": {"hostDevice": "tap1"}}`, "", func(r *cniapi.Request) { r.HostDevice = "tap1" }},
		{"capabilities", `"runtimeConfig": {"ips": ["10.0.0.5/24", "fd00::5"], "mac": "0a:00:00:00:00:01"}`, "IP=10.0.0.9;MAC=0a:00:00:00:00:09",
			func(r *cniapi.Request) { r.WantIPs, r.MAC = addrs("10.0.0.5", "fd00::5"), "0a:00:00:00:00:01" }},
		{"args.cni", `"args": {"cni": {"ips": ["10.0.0.6"]}}`, "IP=10.0.0.9;MAC=0a:00:00:00:00:09",
			func(r *cniapi.Request) { r.WantIPs, r.MAC = addrs("10.0.0.6"), "0a:00:00:00:00:09" }},
		{"CNI_ARGS", "", "IP=10.0.0.9,fd00::9;MAC=0a:00:00:00:00:09", func(r *cniapi.Request) { r.WantIPs, r.MAC = addrs("10.0.0.9", "fd00::9"), "0a:00:00:00:00:09" }},
		{"ipam ours", `"ipam": {"type": "antrea-lite"}`, "", func(*cniapi.Request) {}},
		{"ipam host-local", `"ipam": {"type": "host-local"}`, "", func(*cniapi.Request) {}},
		{"ipam empty", `"ipam": {}`, "", func(r *cniapi.Request) { r.IPAM = "none" }},
		{"ipam none", `"ipam": {"type": "none"}`, "", func(r *cniapi.Request) { r.IPAM = "none" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			a.answer = sample()
			if _, err := (call{verb: "ADD", conf: a.conf("1.0.0", c.more), env: map[string]string{"CNI_ARGS": c.args}}).run(t); err != nil {
				t.Fatal(err)
			}
			want := base
			c.want(&want)
			if diff := cmp.Diff(&want, a.one(t, cniapi.PathAdd), cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestLenientDEL: what only ADD uses must not make a DEL fail, and an empty netns still means "release".
func TestLenientDEL(t *testing.T) {
	a := newAgent(t)
	_, err := call{verb: "DEL", conf: a.conf("0.4.0", `"vlan": 9999, "mtu": 1, "timeoutSeconds": -5, "prevResult": {"cniVersion": "7"}`),
		env: map[string]string{"CNI_NETNS": "-", "CNI_ARGS": "broken"}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if r := a.one(t, cniapi.PathDelete); r.ContainerID != "c1" || r.IfName != "eth0" || r.NetNS != "" {
		t.Errorf("request %+v", r)
	}
}

// TestCheckAndGC pass on what the runtime believes.
func TestCheckAndGC(t *testing.T) {
	a := newAgent(t)
	prev := `"prevResult": {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0"}, {"name": "eth0", "sandbox": "` + sandbox + `", "mac": "0a:58:0a:0a:00:05"}],
		"ips": [{"interface": 1, "address": "10.10.0.5/24"}, {"interface": 0, "address": "192.0.2.1/24"}]}`
	if _, err := (call{verb: "CHECK", conf: a.conf("1.0.0", prev)}).run(t); err != nil {
		t.Fatal(err)
	}
	want := &cniapi.Want{MAC: "0a:58:0a:0a:00:05", IPs: []netip.Prefix{netip.MustParsePrefix("10.10.0.5/24")}}
	if diff := cmp.Diff(want, a.one(t, cniapi.PathCheck).Want, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	if _, err := (call{verb: "GC", conf: a.conf("1.1.0", `"cni.dev/valid-attachments": [{"containerID": "a", "ifname": "eth0"}]`)}).run(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]cniapi.Attachment{{ContainerID: "a", IfName: "eth0"}}, a.one(t, cniapi.PathGC).Valid); diff != "" {
		t.Error(diff)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Clean(path), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
