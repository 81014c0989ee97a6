package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/antrea-lite/podnet/ifstore"
)

// states counts the interfaces by state when Prometheus asks; waiting ports are state="waiting".
type states struct{ list func() []ifstore.Interface }

func (s *states) desc() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_interfaces", "Interfaces of Pods by state.", []string{"state"}, nil)
}

// Describe implements prometheus.Collector.
func (s *states) Describe(c chan<- *prometheus.Desc) { c <- s.desc() }

// Collect implements prometheus.Collector.
func (s *states) Collect(c chan<- prometheus.Metric) {
	count := map[ifstore.State]int{ifstore.StateLinked: 0, ifstore.StateWaiting: 0, ifstore.StateReady: 0, ifstore.StateWithdrawing: 0}
	for _, i := range s.list() {
		count[i.State]++
	}
	for state, n := range count {
		c <- prometheus.MustNewConstMetric(s.desc(), prometheus.GaugeValue, float64(n), string(state))
	}
}
