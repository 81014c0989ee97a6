package podnet_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// What the core itself costs: all parts are in memory.
func BenchmarkAddDelete(b *testing.B) {
	for _, have := range []int{0, 1000} {
		b.Run(fmt.Sprint("interfaces=", have), func(b *testing.B) {
			n, ctx := filled(b, have)
			var id atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req := podnettest.NewRequest(fmt.Sprint("b", id.Add(1)))
					req.NoIPAM = true // the fake address manager is no model of speed
					if _, err := n.Add(ctx, req); err != nil {
						b.Error(err)
					}
					if err := n.Delete(ctx, req.Key); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// A new session of a node with 1000 interfaces: the core's part of the replay.
func BenchmarkReplay(b *testing.B) {
	w := podnettest.NewWorld()
	n, ctx := filledWorld(b, w, 1000)
	b.ReportAllocs()
	for b.Loop() {
		if err := n.Replay(ctx, w.Flows.Replay); err != nil {
			b.Fatal(err)
		}
	}
}

func filled(b *testing.B, have int) (*podnet.Network, context.Context) {
	return filledWorld(b, podnettest.NewWorld(), have)
}

func filledWorld(b *testing.B, w *podnettest.World, have int) (*podnet.Network, context.Context) {
	b.Helper()
	ctx := klog.NewContext(b.Context(), klog.Logger{})
	n, err := podnet.New(w.Config())
	if err != nil {
		b.Fatal(err)
	}
	for i := range have {
		req := podnettest.NewRequest(fmt.Sprint("c", i))
		req.NoIPAM = true
		if _, err := n.Add(ctx, req); err != nil {
			b.Fatal(err)
		}
	}
	return n, ctx
}
