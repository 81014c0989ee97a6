package sim_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/sim"
)

var (
	schedules = flag.Uint64("schedules", 1000, "how many schedules TestSchedules plays")
	from      = flag.Uint64("from", 1, "the first of their seeds")
	seed      = flag.Uint64("seed", 0, "play the schedule of this seed alone, many times, and tell its story")
	file      = flag.String("file", "", "the same with the schedule of a file")
	shrink    = flag.Duration("shrink", 30*time.Second, "how long to make a failing schedule smaller")
)

// TestSchedules plays many schedules on all processors.
func TestSchedules(t *testing.T) {
	if *seed != 0 || *file != "" {
		return // TestOne plays the one that was asked for
	}
	play := &player{begun: time.Now()}
	defer play.progress()()
	t.Run("all", func(t *testing.T) {
		for w := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				play.work(t)
			})
		}
	})
	t.Logf("%d schedules in %v, seeds %d to %d, %d failed", *schedules, time.Since(play.begun).Round(time.Millisecond), *from, *from+*schedules-1, play.failed.Load())
}

// maxFailures ends a run in which something is plainly broken.
const maxFailures = 10

type player struct {
	begun        time.Time
	next, failed atomic.Uint64
	shrinking    sync.Mutex
	shrunk       bool
}

func (p *player) work(t *testing.T) {
	for p.failed.Load() < maxFailures {
		i := p.next.Add(1) - 1
		if i >= *schedules {
			return
		}
		s := sim.Generate(*from + i)
		if r := run(t, s); len(r.Broken) > 0 {
			p.failed.Add(1)
			t.Errorf("seed %d, schedule %d of this run:\n  %s", s.Seed, i+1, strings.Join(r.Broken, "\n  "))
			p.tell(t, s, r)
		}
	}
}

// tell shrinks the first schedule that failed.
func (p *player) tell(t *testing.T, s sim.Schedule, r sim.Result) {
	p.shrinking.Lock()
	defer p.shrinking.Unlock()
	if p.shrunk {
		return
	}
	p.shrunk = true
	explain(t, s, r)
}

// progress tells how far a long run is, on stderr.
func (p *player) progress() (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				n := p.next.Load()
				fmt.Fprintf(os.Stderr, "sim: %d of %d schedules, %.0f/s, %d failed\n", n, *schedules, float64(n)/time.Since(p.begun).Seconds(), p.failed.Load())
			case <-done:
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func run(t *testing.T, s sim.Schedule) (r sim.Result) {
	pprof.Do(context.Background(), pprof.Labels("seed", fmt.Sprint(s.Seed)), func(context.Context) { r = sim.Run(t, s) })
	return r
}

// explain prints a failing schedule, made smaller, and what happens in it.
func explain(t *testing.T, s sim.Schedule, r sim.Result) {
	s.Note = r.Broken[0]
	small := sim.Shrink(t, s, r.Broken, *shrink)
	for range 20 {
		if again := run(t, small); len(again.Broken) > 0 {
			r = again
			break
		}
	}
	t.Errorf("smaller; keep it in testdata as a .json file:\n%s\nits story, in virtual seconds:\n%s", small.JSON(), strings.Join(r.Trace, "\n"))
}

// tries is how often a single schedule is played: goroutines that are due at the
// same virtual moment run in whatever order.
const tries = 20

// TestOne replays one schedule: -seed or -file.
func TestOne(t *testing.T) {
	var s sim.Schedule
	switch {
	case *file != "":
		s = read(t, *file)
	case *seed != 0:
		s = sim.Generate(*seed)
	default:
		return // TestSchedules and TestKept do the work
	}
	var r sim.Result
	for range tries {
		if r = run(t, s); len(r.Broken) > 0 {
			t.Errorf("%s", strings.Join(r.Broken, "\n"))
			explain(t, s, r)
			return
		}
	}
	t.Logf("nothing is wrong with\n%s\nits story, in virtual seconds:\n%s", s.JSON(), strings.Join(r.Trace, "\n"))
}

// TestKept plays the schedules that have shown something once.
func TestKept(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata: %v, %d files", err, len(files))
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			t.Parallel()
			s := read(t, f)
			for range tries {
				if r := run(t, s); len(r.Broken) > 0 {
					t.Fatalf("%s\n%s", strings.Join(r.Broken, "\n"), strings.Join(r.Trace, "\n"))
				}
			}
		})
	}
}

func read(t *testing.T, file string) sim.Schedule {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sim.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s
}
