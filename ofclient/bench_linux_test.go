package ofclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/oftest"
)

// BenchmarkApply measures Pods per second: one group of 20 flows each, one
// caller at a time and 16 at a time, whose groups are joined.
func BenchmarkApply(b *testing.B) {
	peers := map[string]func(b *testing.B) func(context.Context) (net.Conn, error){
		"fake": func(b *testing.B) func(context.Context) (net.Conn, error) {
			sw := oftest.New()
			b.Cleanup(sw.Close)
			return sw.Dial
		},
		"ovs": func(b *testing.B) func(context.Context) (net.Conn, error) {
			return ofclient.DialUnix(ovs(b).MgmtSock("br0"))
		},
	}
	for _, peer := range []string{"fake", "ovs"} {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprintf("%s/%d-callers", peer, callers), func(b *testing.B) {
				var bundles atomic.Int64
				c := run(b, ofclient.Config{Dial: peers[peer](b), Observer: ofclient.Observer{
					Bundle: func(ofclient.BundleOutcome, int, time.Duration) { bundles.Add(1) }}})
				if err := errors.Join(c.Apply(b.Context(), []ofclient.Group{pod(0, 20)})...); err != nil {
					b.Fatal(err)
				}
				bundles.Store(0)
				var next atomic.Int64
				b.ResetTimer()
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for {
							n := next.Add(1)
							if n > int64(b.N) {
								return
							}
							if err := errors.Join(c.Apply(b.Context(), []ofclient.Group{pod(int(n%1000), 20)})...); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "Pods/s")
				b.ReportMetric(float64(b.N)/float64(bundles.Load()), "Pods/bundle")
			})
		}
	}
}

// BenchmarkReplay measures what a new session costs: 200 Pods of 20 flows in one call.
func BenchmarkReplay(b *testing.B) {
	c := run(b, ofclient.Config{Dial: ofclient.DialUnix(ovs(b).MgmtSock("br0"))})
	var groups []ofclient.Group
	for n := range 200 {
		groups = append(groups, pod(n, 20))
	}
	for b.Loop() {
		if err := errors.Join(c.Apply(b.Context(), groups)...); err != nil {
			b.Fatal(err)
		}
	}
}
