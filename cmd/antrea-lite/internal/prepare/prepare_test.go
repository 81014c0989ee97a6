package prepare

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/backend/windows/hostif"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/step"
	"github.com/antrea-lite/podnet/vswitch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// v1 is HNS' first interface with one network. The answers have the form that
// Get-HnsNetwork shows of a node.
type v1 struct {
	missing bool // Open vSwitch's driver is not installed
	deaf    bool // takes the request and does nothing
	down    error
	enabled bool
	posts   int
}

func (v *v1) Call(_ context.Context, method, path, body string) ([]byte, error) {
	if v.down != nil {
		return nil, v.down
	}
	if !strings.HasPrefix(path, "/networks/") {
		return []byte(`{"Success":false,"Error":"Element not found. "}`), nil
	}
	if method == "POST" {
		v.posts++
		var b struct{ Extensions []v1Extension }
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			return nil, err
		}
		v.enabled = !v.deaf && len(b.Extensions) == 1 && b.Extensions[0].ID == extensionID && b.Extensions[0].IsEnabled
		return []byte(`{"Success":true,"Output":{}}`), nil
	}
	list := []map[string]any{{"Id": "E7C3B2F0-F3C5-48DF-AF2B-10FED6D72E7A", "IsEnabled": true, "Name": "Microsoft Windows Filtering Platform"}}
	if !v.missing {
		list = append(list, map[string]any{"Id": extensionID, "IsEnabled": v.enabled, "Name": "Open vSwitch Extension"})
	}
	return json.Marshal(map[string]any{"Success": true, "Output": map[string]any{"ID": path, "Extensions": list}})
}

func node(t *testing.T, hns *hnstest.HNS, caller Caller, uplink string) Node {
	t.Helper()
	linker := func(adapter string) *windows.Linker {
		l, err := windows.NewLinker(windows.Config{HNS: hns, Network: windows.Network{Name: "net", Adapter: adapter,
			Subnets: []windows.Subnet{{Prefix: netip.MustParsePrefix("10.10.0.0/24"), Gateway: netip.MustParseAddr("10.10.0.1")}}}})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	return Node{
		OVS: func(context.Context) (vswitch.Info, error) {
			return vswitch.Info{OVSVersion: "3.1.0", DBSchema: "8.3.1"}, nil
		},
		Find: linker(""), Make: linker(uplink), Extension: Extension{caller}, Network: "net", Uplink: uplink,
		Wiring: wiring("br-uplink", "br-uplink"),
	}
}

// wiring is that of a node whose uplink is a port of that bridge, "": of none,
// and whose adapters have these names.
func wiring(bridge string, adapters ...string) Wiring {
	return Wiring{
		Bridge: func(context.Context, string) (string, error) { return bridge, nil },
		Adapters: func(context.Context) (list []hostif.Adapter, err error) {
			for _, name := range adapters {
				list = append(list, hostif.Adapter{Alias: name})
			}
			return list, nil
		},
	}
}

// outcomes runs the steps.
func outcomes(t *testing.T, n Node, dry bool) (list []step.Outcome, last step.Result, err error) {
	t.Helper()
	err = step.Run(t.Context(), n.Steps(), dry, func(r step.Result) {
		list, last = append(list, r.Outcome), r
	})
	return list, last, err
}

// TestPreparedOnce: a dry run changes nothing, the first run changes all, the next finds it done.
func TestPreparedOnce(t *testing.T) {
	hns, caller := hnstest.New(), &v1{}
	n := node(t, hns, caller, "Ethernet0")
	for i, c := range []struct {
		dry  bool
		want []step.Outcome
	}{
		{true, []step.Outcome{step.Done, step.Planned, step.Done, step.Planned}},
		{true, []step.Outcome{step.Done, step.Planned, step.Done, step.Planned}},
		{false, []step.Outcome{step.Done, step.Changed, step.Done, step.Changed}},
		{false, []step.Outcome{step.Done, step.Done, step.Done, step.Done}},
		{true, []step.Outcome{step.Done, step.Done, step.Done, step.Done}},
	} {
		got, _, err := outcomes(t, n, c.dry)
		if err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("run %d: %s", i, diff)
		}
	}
	if caller.posts != 1 {
		t.Errorf("the extension was enabled %d times", caller.posts)
	}
}

// TestWhatStops: a step that fails is the last one, and says what to do.
func TestWhatStops(t *testing.T) {
	for name, c := range map[string]struct {
		caller *v1
		uplink string
		ovs    error
		steps  int
		words  string
	}{
		"Open vSwitch is away":     {&v1{}, "Ethernet0", errors.New("pipe not there"), 1, "pipe not there"},
		"no uplink":                {&v1{}, "", nil, 2, "--hns-uplink"},
		"driver not installed":     {&v1{missing: true}, "Ethernet0", nil, 4, "install Open vSwitch"},
		"extension stays disabled": {&v1{deaf: true}, "Ethernet0", nil, 4, "right after it was changed"},
		"HNS does not answer":      {&v1{down: errors.New("no answer in 30s")}, "Ethernet0", nil, 4, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			n := node(t, hnstest.New(), c.caller, c.uplink)
			if c.ovs != nil {
				n.OVS = func(context.Context) (vswitch.Info, error) { return vswitch.Info{}, c.ovs }
			}
			list, last, err := outcomes(t, n, false)
			if !errors.Is(err, step.ErrNotDone) || len(list) != c.steps || last.Outcome != step.Failed || !strings.Contains(last.Found, c.words) || last.Would == "" {
				t.Errorf("%v, last %+v, %v", list, last, err)
			}
			// A dry run looks at everything all the same.
			if list, _, err := outcomes(t, n, true); err != nil || len(list) != 4 {
				t.Errorf("dry: %v, %v", list, err)
			}
		})
	}
}

// TestNodeIsNotCutOff: the extension stays disabled until the host is reached
// through Open vSwitch; one that is enabled is nobody's concern.
func TestNodeIsNotCutOff(t *testing.T) {
	const uplink = "Ethernet0"
	for name, w := range map[string]struct {
		wiring Wiring
		words  string
	}{
		"uplink on no bridge":    {wiring("", "Ethernet0", "vEthernet (Ethernet0)"), "port of no bridge"},
		"host's adapter renamed": {wiring("br-uplink", "Ethernet0", "vEthernet (Ethernet0)"), "no adapter called br-uplink"},
		"uplink is the bridge":   {wiring(uplink, uplink), "no uplink"},
		"Open vSwitch away": {Wiring{Bridge: func(context.Context, string) (string, error) { return "", errors.New("pipe not there") }},
			"pipe not there"},
	} {
		t.Run(name, func(t *testing.T) {
			caller := &v1{}
			n := node(t, hnstest.New(), caller, uplink)
			n.Wiring = w.wiring
			list, last, err := outcomes(t, n, false)
			if !errors.Is(err, step.ErrNotDone) || !strings.Contains(last.Found, w.words) || !strings.Contains(last.Would, "docs/windows.md") {
				t.Errorf("%v, last %+v, %v", list, last, err)
			}
			if caller.posts != 0 {
				t.Error("the node was cut off")
			}
			caller.enabled = true
			if list, _, err := outcomes(t, n, false); err != nil || len(list) != 4 {
				t.Errorf("with the extension enabled: %v, %v", list, err)
			}
		})
	}
}

// TestExtensionByEitherSpelling: HNS writes GUIDs in either case, with and without braces.
func TestExtensionByEitherSpelling(t *testing.T) {
	for _, id := range []string{extensionID, strings.ToLower(extensionID), "{" + extensionID + "}"} {
		answer := `{"Success":true,"Output":{"Extensions":[{"Id":"` + id + `","IsEnabled":true}]}}`
		on, err := Extension{fixed(answer)}.Enabled(t.Context(), windows.GUID{1})
		if !on || err != nil {
			t.Errorf("%s: %v, %v", id, on, err)
		}
	}
	for _, answer := range []string{"", "{}", `{"Success":false,"Error":"Element not found. "}`, `{"Success":true}`} {
		if _, err := (Extension{fixed(answer)}).Enabled(t.Context(), windows.GUID{1}); err == nil {
			t.Errorf("%q passes for an answer", answer)
		}
	}
}

type fixed string

func (f fixed) Call(context.Context, string, string, string) ([]byte, error) { return []byte(f), nil }
