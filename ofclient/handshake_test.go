package ofclient_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
	"github.com/antrea-lite/podnet/podnet"
)

func TestConfigWithoutDial(t *testing.T) {
	if _, err := ofclient.New(ofclient.Config{}); err == nil {
		t.Error("no error")
	}
}

// The order on the wire is the promise: subscribe before listing (a port that
// appears in between is told twice rather than never), list before replay,
// replay before anybody else.
func TestSessionIsEstablishedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		cfg := ofclient.Config{Dial: sw.Dial, Replay: func(ctx context.Context, conn *ofclient.Conn) error {
			return errors.Join(conn.Apply(ctx, []ofclient.Group{pod(1, 1)})...)
		}}
		c := run(t, cfg)
		if err := apply(t, c, pod(2, 2)); err != nil {
			t.Fatal(err)
		}
		want := []string{"HELLO", "FEATURES_REQUEST", "SET_ASYNC", "BARRIER_REQUEST", "MULTIPART_REQUEST PORT_DESC",
			"BUNDLE_CONTROL OPEN_REQUEST", "BUNDLE_ADD_MESSAGE", "BARRIER_REQUEST", "BUNDLE_CONTROL COMMIT_REQUEST",
			"BUNDLE_CONTROL OPEN_REQUEST", "BUNDLE_ADD_MESSAGE", "BUNDLE_ADD_MESSAGE", "BARRIER_REQUEST", "BUNDLE_CONTROL COMMIT_REQUEST"}
		if diff := cmp.Diff(want, kinds(sw.Received())); diff != "" {
			t.Error(diff)
		}
		for _, r := range sw.Received() {
			if m, ok := r.Message.(*ofp.SetAsync); ok && !cmp.Equal(m, ofp.PortStatusOnly()) {
				t.Errorf("SET_ASYNC asks for %+v", m)
			}
		}
		wantFlows(t, sw, pod(1, 1), pod(2, 2))
		want2 := ofclient.Status{Connected: true, Ready: true, DatapathID: oftest.DatapathID}
		got := c.Status()
		got.Since = time.Time{}
		if diff := cmp.Diff(want2, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSetConfigWhenSetAsyncIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		sw.SetFaults(func(f *oftest.Faults) { f.RefuseSetAsync = true })
		c := run(t, ofclient.Config{Dial: sw.Dial})
		synctest.Wait()
		sw.AddPort(port(1, "a"))
		synctest.Wait()
		if _, ok := c.Port("a"); !ok || count(sw, isType(ofp.TypeSetConfig)) != 1 {
			t.Errorf("port told: %v, messages: %v", ok, kinds(sw.Received()))
		}
	})
}

func TestHandshakeFailures(t *testing.T) {
	for name, test := range map[string]struct {
		faults oftest.Faults
		raw    []byte // sent by the switch at once
		want   string
	}{
		"no hello":                {faults: oftest.Faults{NoHello: true}, want: "no hello within 5s"},
		"silent after hello":      {faults: oftest.Faults{SilentAfterHello: true}, want: "the switch is silent"},
		"only 1.0 and 1.3":        {faults: oftest.Faults{Versions: []uint8{1, 4}}, want: "it offers 1.0, 1.3): add OpenFlow15 to the bridge's protocols column"},
		"refused as OVS does":     {faults: oftest.Faults{NoHello: true, RefuseVersion: true}, want: "add OpenFlow15 to the bridge's protocols column"},
		"not OpenFlow":            {faults: oftest.Faults{NoHello: true}, raw: []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), want: "is it an OpenFlow switch?"},
		"no framing":              {faults: oftest.Faults{NoHello: true}, raw: []byte{6, 0, 0, 4, 0, 0, 0, 0}, want: "lost its framing"},
		"something else at first": {faults: oftest.Faults{NoHello: true}, raw: frame(t, 0, &ofp.BarrierReply{}), want: "began with BARRIER_REPLY of version 6"},
		"another version after":   {faults: oftest.Faults{SilentAfterHello: true}, raw: []byte{4, 3, 0, 8, 0, 0, 0, 0}, want: "then sent a message of version 4"},
		"features refused": {faults: oftest.Faults{OnMessage: dropType(ofp.TypeFeaturesRequest)},
			raw: frame(t, 1, &ofp.Error{ErrType: ofp.ErrTypeBadRequest, Code: ofp.ErrBadRequestBadType}), want: "features"},
		"dial refused": {faults: oftest.Faults{RefuseDial: errors.New("connection refused by the test")}, want: "connection refused by the test"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newSwitch(t)
				sw.SetFaults(func(f *oftest.Faults) { *f = test.faults })
				c := run(t, ofclient.Config{Dial: sw.Dial, BackoffMin: time.Hour, BackoffMax: time.Hour})
				synctest.Wait()
				if test.raw != nil {
					sw.SendRaw(test.raw)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				err := c.Apply(ctx, []ofclient.Group{pod(1, 1)})[0]
				if !errors.Is(err, podnet.ErrNotConnected) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("Apply: %v\nwant it to wrap ErrNotConnected and to say %q", err, test.want)
				}
				if st := c.Status(); st.Ready || !strings.Contains(st.LastError, test.want) {
					t.Errorf("status: %+v", st)
				}
			})
		})
	}
}

func frame(t *testing.T, xid uint32, m ofp.Message) []byte {
	t.Helper()
	b, err := ofp.Append(nil, xid, m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func dropType(typ ofp.Type) func(int, uint32, ofp.Message) oftest.Verdict {
	return func(_ int, _ uint32, m ofp.Message) oftest.Verdict {
		if m.Type() == typ {
			return oftest.Drop
		}
		return oftest.Pass
	}
}

func TestRunIsOverWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newSwitch(t)
		c, err := ofclient.New(ofclient.Config{Dial: sw.Dial})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if err := apply(t, c, pod(1, 1)); !errors.Is(err, podnet.ErrNotConnected) {
			t.Errorf("Apply after Run: %v", err)
		}
		if _, err := c.Ports(t.Context()); !errors.Is(err, podnet.ErrNotConnected) {
			t.Errorf("Ports after Run: %v", err)
		}
		if now, ever := sw.Sessions(); ever != 1 || now > 1 {
			t.Errorf("%d sessions, %d ever", now, ever)
		}
	})
}
