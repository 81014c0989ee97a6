package join_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/internal/join"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is a run function that holds every batch until the test lets it go.
type gate struct {
	batches chan []int
	release chan struct{}
}

func newGate() *gate { return &gate{make(chan []int, 100), make(chan struct{})} }

func (g *gate) run(ctx context.Context, batch []int) []join.Result[int] {
	g.batches <- batch
	<-g.release
	results := make([]join.Result[int], len(batch))
	for i, n := range batch {
		results[i].Value = 10 * n
		if n < 0 {
			results[i] = join.Result[int]{Err: errNegative}
		}
	}
	return results
}

var errNegative = errors.New("negative")

func TestCallersWhoWaitShareTheNextRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		j := join.New(g.run, 3)
		got := make([]join.Result[int], 6)
		var wg sync.WaitGroup
		for i, n := range []int{0, 1, -2, 3, 4, 5} {
			wg.Go(func() { got[i].Value, got[i].Err = j.Do(t.Context(), n) })
			synctest.Wait()
		}
		for range 3 {
			g.release <- struct{}{}
		}
		wg.Wait()
		close(g.batches)
		var batches [][]int
		for b := range g.batches {
			batches = append(batches, b)
		}
		if diff := cmp.Diff([][]int{{0}, {1, -2, 3}, {4, 5}}, batches); diff != "" {
			t.Error("batches:", diff)
		}
		for i, want := range []int{0, 10, 0, 30, 40, 50} {
			if got[i].Value != want || (got[i].Err != nil) != (i == 2) {
				t.Errorf("result %d: %+v", i, got[i])
			}
		}
	})
}

func TestCallerWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var abandoned []join.Result[int]
		j := join.New(g.run, 0)
		j.Abandoned = func(ctx context.Context, items []int, results []join.Result[int]) {
			if ctx.Err() != nil {
				t.Error("Abandoned got a dead context")
			}
			abandoned = append(abandoned, results...)
		}
		overtaken := errors.New("overtaken")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		for _, n := range []int{1, 2} { // 1 in flight, 2 in the queue
			wg.Go(func() {
				if _, err := j.Do(ctx, n); !errors.Is(err, overtaken) || errors.Is(err, join.ErrInFlight) != (n == 1) {
					t.Errorf("item %d: %v", n, err)
				}
			})
			synctest.Wait()
		}
		cancel(overtaken) // ends both at the same moment: the second may not start then
		wg.Wait()         // at once, while the run is still held

		wg.Go(func() {
			if v, err := j.Do(t.Context(), 3); v != 30 || err != nil {
				t.Errorf("item 3: %v, %v", v, err)
			}
		})
		synctest.Wait()
		g.release <- struct{}{}
		g.release <- struct{}{}
		wg.Wait()
		synctest.Wait()
		close(g.batches)
		var batches [][]int
		for b := range g.batches {
			batches = append(batches, b)
		}
		if diff := cmp.Diff([][]int{{1}, {3}}, batches); diff != "" {
			t.Error("an item that never started must not run:", diff)
		}
		if diff := cmp.Diff([]join.Result[int]{{Value: 10}}, abandoned); diff != "" {
			t.Error("abandoned:", diff)
		}
	})
}

func TestRunContextEndsWithTheLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := make(chan context.Context, 2)
		hold := make(chan struct{})
		j := join.New(func(ctx context.Context, batch []int) []join.Result[int] {
			started <- ctx
			select {
			case <-ctx.Done():
			case <-hold:
			}
			return make([]join.Result[int], len(batch))
		}, 0)
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { j.Do(t.Context(), 0) })
		synctest.Wait()
		wg.Go(func() { j.Do(first, 1) })
		wg.Go(func() { j.Do(second, 2) })
		synctest.Wait()
		hold <- struct{}{}
		<-started
		ctx := <-started
		cancelFirst()
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("the run's context ended while a caller waits")
		}
		cancelSecond()
		synctest.Wait()
		if ctx.Err() == nil {
			t.Error("the run's context outlives its callers")
		}
		wg.Wait()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := join.New(func(ctx context.Context, batch []int) []join.Result[int] {
			<-ctx.Done()
			return []join.Result[int]{{Err: ctx.Err()}}
		}, 1)
		var wg sync.WaitGroup
		for i, want := range []error{context.Canceled, join.ErrClosed} {
			wg.Go(func() {
				if _, err := j.Do(t.Context(), i); !errors.Is(err, want) {
					t.Errorf("item %d: %v, want %v", i, err, want)
				}
			})
			synctest.Wait()
		}
		j.Close()
		j.Close()
		wg.Wait()
		if _, err := j.Do(t.Context(), 2); !errors.Is(err, join.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestWrongNumberOfResultsIsAnErrorForAll(t *testing.T) {
	j := join.New(func(context.Context, []int) []join.Result[int] { return nil }, 0)
	if _, err := j.Do(t.Context(), 1); err == nil {
		t.Error("no error")
	}
}

func TestEveryItemRunsOnce(t *testing.T) {
	var runs, sum, orphans atomic.Int64
	j := join.New(func(_ context.Context, batch []int) []join.Result[int] {
		runs.Add(1)
		for _, n := range batch {
			sum.Add(int64(n))
		}
		return make([]join.Result[int], len(batch))
	}, 16)
	j.Abandoned = func(_ context.Context, items []int, _ []join.Result[int]) { orphans.Add(int64(len(items))) }
	var wg sync.WaitGroup
	var served, left atomic.Int64
	for i := range 64 {
		wg.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%7 == i%7 {
					go cancel()
				}
				if _, err := j.Do(ctx, 1); err == nil {
					served.Add(1)
				} else {
					left.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	j.Close()
	if got := served.Load() + orphans.Load(); got != sum.Load() {
		t.Errorf("%d items ran, %d results were delivered (%d abandoned)", sum.Load(), got, orphans.Load())
	}
	t.Logf("%d runs for %d items, %d callers left, %d of them in flight", runs.Load(), sum.Load(), left.Load(), orphans.Load())
}

func BenchmarkDo(b *testing.B) {
	j := join.New(func(_ context.Context, batch []int) []join.Result[int] { return make([]join.Result[int], len(batch)) }, 0)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			j.Do(b.Context(), 1)
		}
	})
}
