package metrics

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/podnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestEverythingIsExported feeds every observer and reads the page.
func TestEverythingIsExported(t *testing.T) {
	m := New("v1")
	m.Call("ADD", "ok", time.Millisecond)
	m.Event(podnet.Event{Type: podnet.NetworkNotReady})
	m.Audit("clean")
	m.Interfaces(func() []ifstore.Interface { return []ifstore.Interface{{State: ifstore.StateWaiting}} })
	m.Waits(func() []podnet.Wait {
		return []podnet.Wait{{Cause: podnet.CauseDevice, Since: time.Now().Add(-time.Hour)}, {Cause: podnet.CauseDevice, Since: time.Now()}}
	})
	m.Counter("pod_events_dropped_total", "", func() float64 { return 5 })
	n := m.Network("async")
	n.Call(podnet.Call{Op: podnet.OpAdd, Steps: []podnet.StepTime{{Name: "link", Duration: time.Millisecond}}})
	n.Port(podnet.PortTiming{Number: 12 * time.Second, Ready: 13 * time.Second, Waited: true})
	n.Port(podnet.PortTiming{Restart: true})
	of := m.OpenFlow()
	of.Connected(true, true)
	of.Reconnect()
	of.Bundle(ofclient.BundleCommitted, 30, time.Millisecond)
	of.Bundle(ofclient.BundleUnknown, 30, time.Millisecond)
	of.Coalesced(3)
	of.Dropped(ofclient.DropUnexpected)
	db := m.OVSDB()
	for range 3 {
		db.Connected(true)
		db.Connected(false)
	}
	db.Transacted("port", 4, time.Millisecond, nil)
	db.Transacted("port", 4, time.Millisecond, errors.New("no"))

	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	page := w.Body.String()
	for _, line := range []string{
		`antrea_lite_cni_request_duration_seconds_count{outcome="ok",verb="add"} 1`,
		`antrea_lite_operation_step_duration_seconds_count{operation="add",step="link"} 1`,
		`antrea_lite_port_number_seconds_sum{readiness="async",waited="yes"} 12`,
		`antrea_lite_port_flows_seconds_sum{readiness="async",waited="yes"} 1`,
		`antrea_lite_port_ready_seconds_count{readiness="async",waited="yes"} 1`,
		`antrea_lite_connected{link="openflow"} 1`,
		`antrea_lite_connected{link="ovsdb"} 0`,
		`antrea_lite_reconnects_total{link="openflow"} 1`,
		`antrea_lite_reconnects_total{link="ovsdb"} 2`,
		`antrea_lite_bundle_duration_seconds_count{outcome="ok"} 1`,
		`antrea_lite_bundle_duration_seconds_count{outcome="unknown"} 1`,
		`antrea_lite_port_events_coalesced_total 3`,
		`antrea_lite_openflow_messages_dropped_total{what="unexpected"} 1`,
		`antrea_lite_ovsdb_transaction_duration_seconds_count{kind="port",outcome="error"} 1`,
		`antrea_lite_interfaces{state="waiting"} 1`,
		`antrea_lite_interfaces{state="ready"} 0`,
		`antrea_lite_waiting_interfaces{cause="device"} 2`,
		`antrea_lite_waiting_interfaces{cause="number"} 0`,
		`antrea_lite_pod_events_dropped_total 5`,
		`antrea_lite_pod_events_total{type="NetworkNotReady"} 1`,
		`antrea_lite_flow_audits_total{outcome="clean"} 1`,
		`antrea_lite_build_info{version="v1"} 1`,
	} {
		if !strings.Contains(page, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	// Exactly 3600 where the clock is coarse (Windows).
	if !strings.Contains(page, "antrea_lite_longest_wait_seconds 3600") {
		t.Error("the longest wait is not an hour")
	}
}
