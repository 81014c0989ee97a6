package metrics

import "time"

// HNSCall records a call to the Host Network Service of Windows that has
// returned: what was asked, how it ended, and whether anybody still waited.
func (m *Metrics) HNSCall(op string, err error, left bool, took time.Duration) {
	outcome := "ok"
	switch {
	case left:
		outcome = "late"
	case err != nil:
		outcome = "error"
	}
	m.hns.WithLabelValues(op, outcome).Observe(took.Seconds())
}
