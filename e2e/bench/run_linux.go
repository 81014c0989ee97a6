package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// turn is how many calls one world makes in a parallel run before the other has its turn.
const turn = 50

// run plugs n Pods into every world and unplugs them, width calls at a time.
func run(ctx context.Context, worlds []*world, n, width int) ([]result, error) {
	pods := make([][]*lab.Pod, len(worlds))
	for i, w := range worlds {
		var err error
		if pods[i], err = w.newPods(n); err != nil {
			return nil, err
		}
	}
	var results []result
	for _, verb := range []string{"ADD", "DEL"} {
		series := make([]series, len(worlds))
		step := turn
		if width == 1 {
			step = 1
		}
		for from := 0; from < n; from += step {
			for i, w := range worlds {
				if err := series[i].calls(ctx, w, verb, pods[i][from:min(n, from+step)], width); err != nil {
					return nil, err
				}
			}
		}
		for i, w := range worlds {
			results = append(results, series[i].result(w.name, verb, width))
		}
	}
	for i := range worlds {
		if err := dropPods(pods[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// series collects the times of one verb of one world.
type series struct {
	took  []time.Duration
	total time.Duration // of the turns, without pings and the other world's turns
	pings int
	lost  int
}

// calls runs one turn. One at a time, every ADD is followed by the Pod's first
// ping, which is not timed; in parallel there is none, because it would take
// the other calls' processor time.
func (s *series) calls(ctx context.Context, w *world, verb string, pods []*lab.Pod, width int) error {
	if width == 1 {
		for _, p := range pods {
			took, err := w.call(ctx, verb, p)
			if err != nil {
				return err
			}
			s.took, s.total = append(s.took, took), s.total+took
			if verb != "ADD" {
				continue
			}
			lost, err := firstPing(p)
			if err != nil {
				return err
			}
			s.pings++
			if lost {
				s.lost++
			}
		}
		return nil
	}
	var (
		mu   sync.Mutex
		errs []error
		wg   sync.WaitGroup
	)
	slots := make(chan struct{}, width)
	start := time.Now()
	for _, p := range pods {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			took, err := w.call(ctx, verb, p)
			mu.Lock()
			defer mu.Unlock()
			s.took, errs = append(s.took, took), append(errs, err)
		})
	}
	wg.Wait()
	s.total += time.Since(start)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%d at a time: %w", width, err)
	}
	return nil
}
