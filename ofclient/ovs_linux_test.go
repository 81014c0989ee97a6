package ofclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// patience bounds every wait for the real switch.
const patience = 30 * time.Second

// ovs starts a real switch with bridge br0.
func ovs(t testing.TB) *vswitchtest.Switch {
	t.Helper()
	s := vswitchtest.Start(t)
	if err := s.AddBridge("br0", "netdev"); err != nil {
		t.Fatal(err)
	}
	return s
}

func vsctl(t testing.TB, s *vswitchtest.Switch, args ...string) string {
	t.Helper()
	out, err := s.Vsctl(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// freePort returns a TCP port that nobody listens on.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// transports are the ways to reach br0.
func transports(t *testing.T, s *vswitchtest.Switch) map[string]func(context.Context) (net.Conn, error) {
	t.Helper()
	tcp := freePort(t)
	vsctl(t, s, "set-controller", "br0", fmt.Sprintf("ptcp:%d:127.0.0.1", tcp))
	return map[string]func(context.Context) (net.Conn, error){
		"unix": ofclient.DialUnix(s.MgmtSock("br0")),
		"tcp":  ofclient.DialTCP(fmt.Sprintf("127.0.0.1:%d", tcp)),
	}
}

// dump returns the flows of br0 as ovs-ofctl prints them, without counters.
func dump(t testing.TB, s *vswitchtest.Switch) []string {
	t.Helper()
	out, err := s.Ofctl("--no-stats", "dump-flows", "unix:"+s.MgmtSock("br0"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for l := range strings.Lines(out) {
		if l = strings.TrimSpace(l); strings.Contains(l, "actions=") {
			lines = append(lines, l)
		}
	}
	return lines
}

// wantSwitch compares the switch's flows, read back by the client, with groups.
func wantSwitch(t *testing.T, c ofclient.Sender, groups ...ofclient.Group) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	flows, err := c.FlowStats(ctx, ofp.FlowStatsRequest{Table: ofp.TableAll})
	if err != nil {
		t.Fatal(err)
	}
	var got []ofp.CanonicalFlow
	for _, f := range flows {
		got = append(got, f.Canonical())
	}
	diffFlows(t, got, groups)
}

// until reads the watch until the client's view satisfies ok.
func until(t *testing.T, w *ofclient.PortWatch, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !ok() {
		if _, err := w.Next(ctx); err != nil {
			t.Fatalf("waiting for %s: %v", what, err)
		}
	}
}

// tells repeats a call with little patience until its error says enough: how
// soon a client has found out what is wrong is not for a test to say.
func tells(t testing.TB, call func(context.Context) error, enough func(error) bool) {
	t.Helper()
	end, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		ctx, cancel := context.WithTimeout(end, 200*time.Millisecond)
		err := call(ctx)
		cancel()
		if enough(err) {
			t.Log(err)
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-end.Done():
			t.Fatal(err)
		}
	}
}

// unknownGroup is a flow that only the commit refuses.
func unknownGroup(n int) ofp.FlowMod {
	m := flow(n)
	m.Instructions = ofp.Apply(ofp.Group{ID: 4711})
	return m
}

// badPort is a flow that the add refuses.
func badPort(n int) ofp.FlowMod {
	m := flow(n)
	m.Instructions = ofp.Apply(ofp.Output{Port: 0xffffff77})
	return m
}

func TestOVS(t *testing.T) {
	s := ovs(t)
	for name, dial := range transports(t, s) {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Ofctl("del-flows", "unix:"+s.MgmtSock("br0")); err != nil {
				t.Fatal(err)
			}
			c := run(t, ofclient.Config{Dial: dial})
			if err := apply(t, c, pod(1, 5)); err != nil {
				t.Fatal(err)
			}
			id := strings.Trim(vsctl(t, s, "get", "bridge", "br0", "datapath_id"), `"`)
			if got := fmt.Sprintf("%016x", c.Status().DatapathID); got != id {
				t.Errorf("datapath id %s, ovs-vsctl says %s", got, id)
			}
			// An add that fails would not stop the switch from committing the rest (fact 15).
			bad := ofclient.Group{Name: "bad", Mods: append(pod(7, 5).Mods, badPort(799))}
			if errs := c.Apply(t.Context(), []ofclient.Group{pod(1, 5), bad}); errs[0] != nil || errs[1] == nil {
				t.Error(errs)
			}
			wantSwitch(t, c, pod(1, 5))
			groups := []ofclient.Group{pod(2, 5), pod(3, 5), pod(4, 5), pod(5, 5), pod(6, 5)}
			groups[1].Mods = append(groups[1].Mods, badPort(399))
			groups[3].Mods = append(groups[3].Mods, unknownGroup(599))
			errs := c.Apply(t.Context(), groups)
			for i, err := range errs {
				if fe, ok := errors.AsType[*ofclient.FlowError](err); ok != (i == 1 || i == 3) {
					t.Errorf("group %d: %v", i, err)
				} else if ok && fe.Mod.Key() != groups[i].Mods[5].Key() {
					t.Errorf("group %d: blames %v", i, fe.Mod)
				}
			}
			wantSwitch(t, c, pod(1, 5), pod(2, 5), pod(4, 5), pod(6, 5))
			// In one bundle a delete comes before an add of what it deletes.
			move := ofclient.Group{Name: "move", Mods: []ofp.FlowMod{{Command: ofp.FlowDelete, Table: ofp.TableAll}, flow(1)}}
			if err := apply(t, c, move); err != nil {
				t.Fatal(err)
			}
			if got := dump(t, s); len(got) != 1 || !strings.Contains(got[0], "nw_src=10.0.0.1") {
				t.Errorf("ovs-ofctl prints %q", got)
			}
			flush := &ofp.CTFlush{}
			if err := c.Send(t.Context(), flush); err != nil {
				t.Errorf("ct flush: %v", err)
			}
		})
	}
}

func TestOVSPorts(t *testing.T) {
	s := ovs(t)
	vsctl(t, s, "add-port", "br0", "a3", "--", "set", "interface", "a3", "type=internal")
	for name, dial := range transports(t, s) {
		t.Run(name, func(t *testing.T) {
			c := run(t, ofclient.Config{Dial: dial, ListPeriod: -1}) // nothing but events
			w := c.WatchPorts()
			defer w.Close()
			number := func(name string) uint32 { d, _ := c.Port(name); return d.Number }
			until(t, w, "a3", func() bool { return number("a3") != 0 })
			until(t, w, "the bridge's own port", func() bool { return number("br0") == ofp.PortLocal })
			// c1 takes the number of a3, which has not asked for it (fact 8).
			stolen := number("a3")
			vsctl(t, s, "add-port", "br0", "c1", "--", "set", "interface", "c1", "type=internal", fmt.Sprintf("ofport_request=%d", stolen))
			until(t, w, "c1 with the stolen number", func() bool { return number("c1") == stolen })
			until(t, w, "a3 with another number", func() bool { return number("a3") != 0 && number("a3") != stolen })
			for _, name := range []string{"a3", "c1"} {
				// OVSDB hears of it later than OpenFlow.
				vsctl(t, s, "--timeout=30", "wait-until", "interface", name, fmt.Sprintf("ofport=%d", number(name)))
			}
			vsctl(t, s, "del-port", "a3")
			until(t, w, "a3 gone", func() bool { return number("a3") == 0 })
			ports, err := c.Ports(t.Context())
			if err != nil || len(ports) != 2 {
				t.Errorf("%v, %v", ports, err)
			}
			vsctl(t, s, "del-port", "c1", "--", "add-port", "br0", "a3", "--", "set", "interface", "a3", "type=internal")
			until(t, w, "a3 again", func() bool { return number("a3") != 0 && number("c1") == 0 })
		})
	}
}

// The fallback for a switch without SET_ASYNC brings port events too.
func TestOVSPortsBySetConfig(t *testing.T) {
	s := ovs(t)
	c := run(t, ofclient.Config{Dial: refusing(ofclient.DialUnix(s.MgmtSock("br0")), ofp.TypeSetAsync), ListPeriod: -1})
	w := c.WatchPorts()
	defer w.Close()
	until(t, w, "the bridge's own port", func() bool { _, ok := c.Port("br0"); return ok })
	vsctl(t, s, "add-port", "br0", "a3", "--", "set", "interface", "a3", "type=internal")
	until(t, w, "a3", func() bool { _, ok := c.Port("a3"); return ok })
}
