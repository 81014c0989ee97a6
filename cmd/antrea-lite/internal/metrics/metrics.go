// Package metrics holds the agent's Prometheus metrics in a registry of their
// own, and the observers through which the parts feed them.
package metrics

import (
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/podnet"
)

const namespace = "antrea_lite"

// Metrics are safe for concurrent use.
type Metrics struct {
	reg *prometheus.Registry

	calls    *prometheus.HistogramVec // verb, outcome
	steps    *prometheus.HistogramVec // operation, step
	number   *prometheus.HistogramVec // readiness, waited
	flows    *prometheus.HistogramVec // readiness, waited
	ready    *prometheus.HistogramVec // readiness, waited
	up       *prometheus.GaugeVec     // link
	reconn   *prometheus.CounterVec   // link
	bundles  *prometheus.HistogramVec // outcome
	mods     prometheus.Histogram
	joined   prometheus.Counter
	dropped  *prometheus.CounterVec   // what
	transact *prometheus.HistogramVec // kind, outcome
	changes  *prometheus.HistogramVec // kind
	hns      *prometheus.HistogramVec // operation, outcome
	events   *prometheus.CounterVec   // type
	audits   *prometheus.CounterVec   // outcome
}

// New returns metrics with the version in build_info.
func New(version string) *Metrics {
	m := &Metrics{reg: prometheus.NewRegistry()}
	// From half a millisecond, which a joined call takes, to two minutes, the longest a runtime waits.
	call := prometheus.ExponentialBucketsRange(0.0005, 120, 18)
	m.calls = m.histogram("cni_request_duration_seconds", "Duration of CNI calls by verb and outcome: ok or the CNI error code.", call, "verb", "outcome")
	m.steps = m.histogram("operation_step_duration_seconds", "Duration of the steps of an operation.", call, "operation", "step")
	m.number = m.histogram("port_number_seconds", "Time from asking Open vSwitch for a port to its OpenFlow number.", call, "readiness", "waited")
	m.flows = m.histogram("port_flows_seconds", "Time from a port's OpenFlow number to its confirmed flows.", call, "readiness", "waited")
	m.ready = m.histogram("port_ready_seconds", "Time from asking Open vSwitch for a port to its confirmed flows.", call, "readiness", "waited")
	m.up = gauge(m.reg, "connected", "Whether the link to Open vSwitch is up and usable: 1 or 0.", "link")
	m.reconn = counter(m.reg, "reconnects_total", "Connections to Open vSwitch after the first.", "link")
	m.bundles = m.histogram("bundle_duration_seconds", "Duration of OpenFlow bundles by outcome: ok, refused, timeout, aborted or unknown.", call, "outcome")
	m.mods = prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: namespace, Name: "bundle_flow_mods", Help: "Flow changes in one bundle.", Buckets: prometheus.ExponentialBuckets(1, 4, 9)})
	m.joined = prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "port_events_coalesced_total", Help: "Port events that found an unread one of the same port."})
	m.dropped = counter(m.reg, "openflow_messages_dropped_total", "OpenFlow messages that were not used.", "what")
	m.transact = m.histogram("ovsdb_transaction_duration_seconds", "Duration of OVSDB transactions.", call, "kind", "outcome")
	m.changes = m.histogram("ovsdb_transaction_changes", "Changes joined in one OVSDB transaction.", prometheus.ExponentialBuckets(1, 2, 10), "kind")
	m.hns = m.histogram("hns_call_duration_seconds", "Windows: duration of calls to the Host Network Service by outcome: ok, error, or late when nobody waited any more.", call, "operation", "outcome")
	m.events = counter(m.reg, "pod_events_total", "Events for Pods: NetworkNotReady, NetworkReady.", "type")
	m.audits = counter(m.reg, "flow_audits_total", "Times the flows were read back after a reconnect: clean, repaired or failed.", "outcome")
	build := gauge(m.reg, "build_info", "Always 1.", "version")
	build.WithLabelValues(version).Set(1)
	m.reg.MustRegister(m.mods, m.joined, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	// Series exist before the first event, so that an alert on them can be written.
	for _, link := range []string{"ovsdb", "openflow"} {
		m.up.WithLabelValues(link).Set(0)
		m.reconn.WithLabelValues(link)
	}
	return m
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
	m.reg.MustRegister(h)
	return h
}

func gauge(reg *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
	reg.MustRegister(g)
	return g
}

func counter(reg *prometheus.Registry, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	reg.MustRegister(c)
	return c
}

// Handler serves /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{Registry: m.reg})
}

// Interfaces makes the number of interfaces by state a metric, counted when asked for.
func (m *Metrics) Interfaces(list func() []ifstore.Interface) {
	m.reg.MustRegister(&states{list: list})
}

// Waits makes the interfaces that wait a metric, by what they wait for; counted when asked for.
func (m *Metrics) Waits(list func() []podnet.Wait) { m.reg.MustRegister(&waits{list: list}) }

// Counter adds a count that is read when asked for.
func (m *Metrics) Counter(name, help string, value func() float64) {
	m.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, value))
}

// Gauge adds a value that is read when asked for.
func (m *Metrics) Gauge(name, help string, labels prometheus.Labels, value func() float64) {
	m.reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help, ConstLabels: labels}, value))
}

// Call records one CNI call.
func (m *Metrics) Call(verb, outcome string, took time.Duration) {
	m.calls.WithLabelValues(strings.ToLower(verb), outcome).Observe(took.Seconds())
}

// Event counts an event for a Pod.
func (m *Metrics) Event(e podnet.Event) { m.events.WithLabelValues(string(e.Type)).Inc() }

// Audit counts one reading back of the flows.
func (m *Metrics) Audit(outcome string) { m.audits.WithLabelValues(outcome).Inc() }

// Network is what package podnet reports to; readiness is how its ports become ready: sync or async.
func (m *Metrics) Network(readiness string) podnet.Observer {
	return podnet.Observer{
		Call: func(c podnet.Call) {
			for _, s := range c.Steps {
				m.steps.WithLabelValues(string(c.Op), s.Name).Observe(s.Duration.Seconds())
			}
		},
		Port: func(t podnet.PortTiming) {
			if t.Restart {
				return // it says how long this agent took to look around, not how long the port took
			}
			waited := "no"
			if t.Waited {
				waited = "yes"
			}
			m.number.WithLabelValues(readiness, waited).Observe(t.Number.Seconds())
			m.flows.WithLabelValues(readiness, waited).Observe((t.Ready - t.Number).Seconds())
			m.ready.WithLabelValues(readiness, waited).Observe(t.Ready.Seconds())
		},
	}
}

// OpenFlow is what package ofclient reports to.
func (m *Metrics) OpenFlow() ofclient.Observer {
	return ofclient.Observer{
		Connected: func(_, ready bool) { m.up.WithLabelValues("openflow").Set(number(ready)) },
		Reconnect: func() { m.reconn.WithLabelValues("openflow").Inc() },
		Bundle: func(outcome ofclient.BundleOutcome, mods int, d time.Duration) {
			label := string(outcome)
			if outcome == ofclient.BundleCommitted {
				label = "ok" // as in every other metric with an outcome
			}
			m.bundles.WithLabelValues(label).Observe(d.Seconds())
			m.mods.Observe(float64(mods))
		},
		Coalesced: func(events int) { m.joined.Add(float64(events)) },
		Dropped:   func(what ofclient.Drop) { m.dropped.WithLabelValues(string(what)).Inc() },
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
