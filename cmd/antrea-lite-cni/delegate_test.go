package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// runFakeIPAM is the delegated plugin: it logs its verb and whether the
// configuration is complete, and does what "do" in the configuration says.
func runFakeIPAM() int {
	in, err := io.ReadAll(os.Stdin)
	var conf struct {
		CNIVersion string `json:"cniVersion"`
		Name       string `json:"name"`
		IPAM       struct {
			Do     map[string]string `json:"do"` // by verb: "fail", "code", "nothing"
			Result json.RawMessage   `json:"result"`
		} `json:"ipam"`
	}
	if err == nil {
		err = json.Unmarshal(in, &conf)
	}
	verb := os.Getenv("CNI_COMMAND")
	f, openErr := os.OpenFile(os.Getenv("LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil || openErr != nil {
		fmt.Fprintln(os.Stderr, err, openErr)
		return 1
	}
	fmt.Fprintf(f, "%s %s %s %s\n", verb, conf.Name, os.Getenv("CNI_CONTAINERID"), os.Getenv("CNI_IFNAME"))
	f.Close()
	switch conf.IPAM.Do[verb] {
	case "fail":
		fmt.Fprintln(os.Stderr, "out of luck")
		return 1
	case "code":
		fmt.Print(`{"cniVersion": "1.0.0", "code": 120, "msg": "pool is dry", "details": "refill it"}`)
		return 1
	}
	if verb == "ADD" {
		os.Stdout.Write(conf.IPAM.Result)
	}
	return 0
}

// delegated is a plugin call with the fake IPAM plugin in CNI_PATH.
func delegated(t *testing.T, a *agent, verb, version, do, more string) (call, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	write(t, log, "")
	result := `{"cniVersion": "1.0.0", "ips": [{"address": "192.0.2.9/24", "gateway": "192.0.2.1"}], "routes": [{"dst": "0.0.0.0/0"}], "dns": {"nameservers": ["192.0.2.53"]}}`
	if version < "1" {
		result = `{"cniVersion": "0.4.0", "ips": [{"version": "4", "address": "192.0.2.9/24", "gateway": "192.0.2.1"}], "routes": [{"dst": "0.0.0.0/0"}]}`
	}
	conf := a.conf(version, fmt.Sprintf(`"ipam": {"type": "%s", "do": %s, "result": %s}`, fakeIPAM, do, result))
	if more != "" {
		conf = strings.TrimSuffix(conf, "}") + ", " + more + "}"
	}
	return call{verb: verb, conf: conf, env: map[string]string{"CNI_PATH": "/nonexistent" + string(os.PathListSeparator) + ipamDir, "LOG": log}}, log
}

func logged(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for line := range strings.Lines(string(b)) {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if rest != "net c1 eth0" {
			t.Errorf("the IPAM plugin was called with %q", rest)
		}
		verbs = append(verbs, verb)
	}
	return verbs
}

func TestDelegatedIPAM(t *testing.T) {
	refuse := func(string, *cniapi.Request, <-chan struct{}) *cniapi.Error {
		return &cniapi.Error{Code: 100, Msg: "no", Details: "yes"}
	}
	unknown := func(path string, _ *cniapi.Request, _ <-chan struct{}) *cniapi.Error {
		if path == cniapi.PathCheck {
			return &cniapi.Error{Code: cniapi.CodeUnknown, Msg: "unknown", Details: "send ADD"}
		}
		return nil
	}
	// A repeated ADD, of an interface that CHECK finds well or spoilt.
	stands := func(check *cniapi.Error) func(string, *cniapi.Request, <-chan struct{}) *cniapi.Error {
		return func(path string, _ *cniapi.Request, _ <-chan struct{}) *cniapi.Error {
			if path == cniapi.PathCheck {
				return check
			}
			return &cniapi.Error{Code: 7, Msg: "exists with other addresses", Details: "send DEL first"}
		}
	}
	spoilt := &cniapi.Error{Code: cniapi.CodeCheck, Msg: "flows are missing", Details: "send DEL"}
	for _, c := range []struct {
		name, verb, do, more string
		before               func(string, *cniapi.Request, <-chan struct{}) *cniapi.Error
		want                 []string // verbs of the IPAM plugin
		code                 uint     // 0: success
		words                []string
		asked                bool // the agent
	}{
		{"add", "ADD", `{}`, "", nil, []string{"ADD"}, 0, nil, true},
		{"add refused by the agent", "ADD", `{}`, "", refuse, []string{"ADD", "DEL"}, 100, []string{"no"}, true},
		{"add fails", "ADD", `{"ADD": "fail"}`, "", unknown, []string{"ADD", "DEL"}, 105, []string{fakeIPAM, "out of luck"}, true},
		{"add fails in its own words", "ADD", `{"ADD": "code"}`, "", unknown, []string{"ADD", "DEL"}, 120, []string{fakeIPAM, "pool is dry", "refill"}, true},
		{"repeated add fails and keeps the address", "ADD", `{"ADD": "code"}`, "", stands(nil), []string{"ADD"}, 120, []string{"pool is dry"}, true},
		{"repeated add is refused and keeps the address", "ADD", `{}`, "", stands(nil), []string{"ADD"}, 7, []string{"other addresses"}, true},
		{"repeated add of what is spoilt keeps the address", "ADD", `{}`, "", stands(spoilt), []string{"ADD"}, 7, []string{"other addresses"}, true},
		{"add refused and undo fails", "ADD", `{"DEL": "fail"}`, "", refuse, []string{"ADD", "DEL"}, 100, []string{"no"}, true},
		{"del", "DEL", `{}`, "", nil, []string{"DEL"}, 0, nil, true},
		{"del refused by the agent keeps the address", "DEL", `{}`, "", refuse, nil, 100, []string{"no"}, true},
		{"del fails", "DEL", `{"DEL": "code"}`, "", nil, []string{"DEL"}, 120, []string{"pool is dry"}, true},
		{"check", "CHECK", `{}`, prevOfC1, nil, []string{"CHECK"}, 0, nil, true},
		{"check fails", "CHECK", `{"CHECK": "code"}`, prevOfC1, nil, []string{"CHECK"}, 120, []string{"pool is dry"}, false},
	} {
		for _, version := range []string{"0.4.0", "1.1.0"} {
			t.Run(c.name+" "+version, func(t *testing.T) {
				t.Parallel()
				a := newAgent(t)
				a.before, a.answer = c.before, sample()
				run, log := delegated(t, a, c.verb, version, c.do, c.more)
				_, err := run.run(t)
				if c.code == 0 && err != nil {
					t.Error(err)
				}
				if c.code != 0 {
					wantError(t, err, c.code, c.words...)
				}
				if diff := cmp.Diff(c.want, logged(t, log)); diff != "" {
					t.Errorf("IPAM calls: %s", diff)
				}
				if (len(a.requests) > 0) != c.asked {
					t.Errorf("agent asked: %v", a.requests)
				}
			})
		}
	}
}

func TestDelegatedAddresses(t *testing.T) {
	a := newAgent(t)
	a.answer = sample()
	run, _ := delegated(t, a, "ADD", "1.1.0", `{}`, `"runtimeConfig": {"ips": ["192.0.2.9"]}`)
	out, err := run.run(t)
	if err != nil {
		t.Fatal(err)
	}
	req := a.one(t, cniapi.PathAdd)
	want := &cniapi.Request{IPAM: fakeIPAM,
		Addresses: []cniapi.Address{{Prefix: netip.MustParsePrefix("192.0.2.9/24"), Gateway: netip.MustParseAddr("192.0.2.1")}},
		Routes:    []cniapi.Route{{Dst: netip.MustParsePrefix("0.0.0.0/0")}}}
	got := &cniapi.Request{IPAM: req.IPAM, Addresses: req.Addresses, Routes: req.Routes, WantIPs: req.WantIPs}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{})); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(string(out), "192.0.2.53") {
		t.Errorf("the IPAM plugin's DNS is lost: %s", out)
	}
}

// TestHostLocalWithRanges is delegated: the ranges in the configuration are what the user asked for.
func TestHostLocalWithRanges(t *testing.T) {
	a := newAgent(t)
	_, err := call{verb: "ADD", conf: a.conf("1.0.0", `"ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}`)}.run(t)
	wantError(t, err, 105, "host-local", "CNI_PATH")
}

func TestDelegatedGCAndStatus(t *testing.T) {
	a := newAgent(t)
	for _, verb := range []string{"GC", "STATUS"} {
		run, log := delegated(t, a, verb, "1.1.0", `{}`, `"cni.dev/valid-attachments": []`)
		if _, err := run.run(t); err != nil {
			t.Fatal(err)
		}
		if b, _ := os.ReadFile(log); !strings.HasPrefix(string(b), verb) {
			t.Errorf("%s was not passed on: %q", verb, b)
		}
	}
}
