package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/antrea-lite/podnet/podnet"
)

// waits counts the interfaces that wait, by what they wait for, when Prometheus asks.
type waits struct{ list func() []podnet.Wait }

func (w *waits) count() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_waiting_interfaces", "Interfaces of Pods that wait, by what they wait for.", []string{"cause"}, nil)
}

func (w *waits) longest() *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_longest_wait_seconds", "How long the interface that waits longest has waited; 0 when none does.", nil, nil)
}

// Describe implements prometheus.Collector.
func (w *waits) Describe(c chan<- *prometheus.Desc) {
	c <- w.count()
	c <- w.longest()
}

// Collect implements prometheus.Collector.
func (w *waits) Collect(c chan<- prometheus.Metric) {
	count := make(map[podnet.Cause]int)
	longest := 0.0
	for i, wait := range w.list() {
		count[wait.Cause]++
		if i == 0 { // they come the longest first
			longest = max(0, time.Since(wait.Since).Seconds())
		}
	}
	for _, cause := range podnet.Causes() {
		c <- prometheus.MustNewConstMetric(w.count(), prometheus.GaugeValue, float64(count[cause]), string(cause))
	}
	c <- prometheus.MustNewConstMetric(w.longest(), prometheus.GaugeValue, longest)
}
