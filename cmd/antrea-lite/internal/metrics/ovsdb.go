package metrics

import (
	"sync/atomic"
	"time"

	"github.com/antrea-lite/podnet/vswitch"
)

// OVSDB is what package vswitch reports to.
func (m *Metrics) OVSDB() vswitch.Observer { return &ovsdb{m: m} }

type ovsdb struct {
	m    *Metrics
	seen atomic.Bool // connected at least once
}

// Connected implements vswitch.Observer.
func (o *ovsdb) Connected(current bool) {
	o.m.up.WithLabelValues("ovsdb").Set(number(current))
	if current && o.seen.Swap(true) {
		o.m.reconn.WithLabelValues("ovsdb").Inc()
	}
}

// Transacted implements vswitch.Observer.
func (o *ovsdb) Transacted(kind string, changes int, took time.Duration, err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	o.m.transact.WithLabelValues(kind, outcome).Observe(took.Seconds())
	o.m.changes.WithLabelValues(kind).Observe(float64(changes))
}
