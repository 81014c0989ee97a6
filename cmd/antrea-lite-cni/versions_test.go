package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

func sample() cniapi.Interface {
	return cniapi.Interface{
		Host: "podabc", MAC: "0a:58:0a:0a:00:05", MTU: 1450,
		Addresses: []cniapi.Address{
			{Prefix: netip.MustParsePrefix("10.10.0.5/24"), Gateway: netip.MustParseAddr("10.10.0.1")},
			{Prefix: netip.MustParsePrefix("fd00:10::5/64"), Gateway: netip.MustParseAddr("fd00:10::1")},
		},
		Routes: []cniapi.Route{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: netip.MustParseAddr("10.10.0.1")}},
	}
}

// TestVersions is the matrix of every version with every verb.
func TestVersions(t *testing.T) {
	type row struct {
		version                  string
		add, check, gc, version1 bool
	}
	for _, r := range []row{
		{"", false, false, false, true}, {"0.1.0", false, false, false, true}, {"0.2.0", false, false, false, true},
		{"0.3.0", false, false, false, true}, {"0.3.1", true, false, false, true}, {"0.4.0", true, true, false, true},
		{"1.0.0", true, true, false, true}, {"1.1.0", true, true, true, true}, {"1.2.0", false, false, false, true},
		{"banana", false, false, false, true},
	} {
		t.Run("v"+r.version, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			a.answer = sample()
			prev := `"prevResult": {"cniVersion": "0.4.0", "interfaces": [{"name": "eth0", "sandbox": "` + sandbox + `", "mac": "0a:58:0a:0a:00:05"}],
				"ips": [{"version": "4", "interface": 0, "address": "10.10.0.5/24"}]}`
			for _, v := range []struct {
				verb, more string
				ok         bool
			}{
				{"ADD", "", r.add}, {"DEL", "", r.add}, {"CHECK", prev, r.check},
				{"GC", `"cni.dev/valid-attachments": []`, r.gc}, {"STATUS", "", r.gc}, {"VERSION", "", true},
			} {
				out, err := call{verb: v.verb, conf: a.conf(r.version, v.more)}.run(t)
				if !v.ok {
					wantError(t, err, cniapi.CodeVersion, "0.3.1", "0.4.0", "1.0.0", "1.1.0")
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", v.verb, err)
				}
				if v.verb == "ADD" {
					checkResult(t, out, r.version)
					if err := a.end(t); err != nil {
						t.Errorf("the result was printed and not confirmed: %v", err)
					}
				}
			}
		})
	}
}

func checkResult(t *testing.T, out []byte, version string) {
	t.Helper()
	got, err := create.CreateFromBytes(out)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got.Version() != version {
		t.Errorf("result of version %s, want %s", got.Version(), version)
	}
	res, err := current.NewResultFromResult(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Interfaces) != 2 || res.Interfaces[1].Name != "eth0" || res.Interfaces[1].Sandbox != sandbox || res.Interfaces[0].Sandbox != "" {
		t.Errorf("interfaces: %s", out)
	}
	if len(res.IPs) != 2 || res.IPs[1].Address.String() != "fd00:10::5/64" || res.IPs[0].Gateway.String() != "10.10.0.1" {
		t.Fatalf("ips: %s", out)
	}
	if *res.IPs[0].Interface != 1 || len(res.Routes) != 1 {
		t.Errorf("result: %s", out)
	}
	if hasMTU := res.Interfaces[1].Mtu != 0; hasMTU != (version == "1.1.0") {
		t.Errorf("mtu in a result of version %s: %v", version, hasMTU)
	}
}

func TestVersionNeedsNothing(t *testing.T) {
	out, err := call{verb: "VERSION", env: map[string]string{"CNI_CONTAINERID": "-", "CNI_NETNS": "-", "CNI_IFNAME": "-", "CNI_PATH": "-"}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ SupportedVersions []string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(supported(), got.SupportedVersions); diff != "" {
		t.Error(diff)
	}
}

// TestChaining passes results of earlier plugins in every version and finds them in ours.
func TestChaining(t *testing.T) {
	prevs := map[string]string{
		"0.2.0": `{"cniVersion": "0.2.0", "ip4": {"ip": "192.0.2.7/24"}}`,
		"0.3.1": `{"cniVersion": "0.3.1", "interfaces": [{"name": "net1", "sandbox": "/x"}], "ips": [{"version": "4", "interface": 0, "address": "192.0.2.7/24"}]}`,
		"1.0.0": `{"cniVersion": "1.0.0", "interfaces": [{"name": "net1", "sandbox": "/x"}], "ips": [{"interface": 0, "address": "192.0.2.7/24"}]}`,
		"1.1.0": `{"cniVersion": "1.1.0", "interfaces": [{"name": "net1", "sandbox": "/x", "mtu": 9000}], "ips": [{"interface": 0, "address": "192.0.2.7/24"}]}`,
		"none":  `{"interfaces": [{"name": "net1", "sandbox": "/x"}], "ips": [{"interface": 0, "address": "192.0.2.7/24"}]}`,
	}
	for prevVersion, prev := range prevs {
		for _, version := range supported() {
			if prevVersion == "none" && version < "1" {
				continue // the sample is of 1.0.0's form
			}
			t.Run(fmt.Sprintf("%s-in-%s", prevVersion, version), func(t *testing.T) {
				t.Parallel()
				a := newAgent(t)
				a.answer = sample()
				out, err := call{verb: "ADD", conf: a.conf(version, `"prevResult": `+prev)}.run(t)
				if err != nil {
					t.Fatal(err)
				}
				a.end(t)
				raw, err := create.CreateFromBytes(out)
				if err != nil {
					t.Fatal(err)
				}
				res, err := current.NewResultFromResult(raw)
				if err != nil {
					t.Fatal(err)
				}
				if len(res.IPs) != 3 || res.IPs[0].Address.String() != "192.0.2.7/24" {
					t.Fatalf("result %s", out)
				}
				if i := *res.IPs[1].Interface; res.Interfaces[i].Name != "eth0" {
					t.Errorf("our address is of interface %d: %s", i, out)
				}
			})
		}
	}
}
