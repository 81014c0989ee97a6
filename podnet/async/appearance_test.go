package async_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet/async"
)

// devices is a host-interface list that counts its listings.
type devices struct {
	mu    sync.Mutex
	names []string
	err   error
	calls int
	took  time.Duration
	hang  bool // until the context ends
}

func (d *devices) list(ctx context.Context) ([]string, error) {
	d.mu.Lock()
	d.calls++
	took, hang := d.took, d.hang
	d.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	time.Sleep(took)
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.names, d.err
}

func (d *devices) set(err error, names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.names, d.err = names, err
}

func (d *devices) listings() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls
}

func TestAppearanceSaysWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &devices{names: []string{"lo", "tap1"}}
		a := async.NewAppearance(d.list, time.Second)
		errs := a.Check(t.Context(), []string{"tap1", "tap2"})
		if errs[0] != nil || !errors.Is(errs[1], async.ErrNoDevice) || errs[1].Error() != "host interface tap2 has not appeared yet" {
			t.Errorf("%v", errs)
		}
		if errs := a.Check(t.Context(), nil); len(errs) != 0 || d.listings() != 1 {
			t.Errorf("nobody asked: %v, %d listings", errs, d.listings())
		}
	})
}

// One listing per tick, however many Pods wait and however slow it is.
func TestAppearanceSharesAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &devices{took: 300 * time.Millisecond}
		a := async.NewAppearance(d.list, time.Second)
		var pods sync.WaitGroup
		for p := range 300 {
			pods.Go(func() {
				for range 10 {
					a.Check(t.Context(), []string{fmt.Sprint("tap", p)})
					time.Sleep(time.Second)
				}
			})
		}
		begun := time.Now()
		pods.Wait()
		if got, most := d.listings(), int(time.Since(begun)/time.Second)+1; got > most || got < 5 {
			t.Errorf("%d listings in %v, want at most %d", got, time.Since(begun), most)
		}
	})
}

func TestAppearanceDoesNotKeepAFailedListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("the service is away")
		d := &devices{err: away}
		a := async.NewAppearance(d.list, time.Minute)
		if errs := a.Check(t.Context(), []string{"tap1"}); !errors.Is(errs[0], away) || errors.Is(errs[0], async.ErrNoDevice) {
			t.Errorf("%v", errs)
		}
		d.set(nil, "tap1")
		if errs := a.Check(t.Context(), []string{"tap1"}); errs[0] != nil {
			t.Errorf("the failure was kept: %v", errs)
		}
		d.set(away)
		if errs := a.Check(t.Context(), []string{"tap1"}); errs[0] != nil {
			t.Errorf("a good listing within its tick was not used: %v", errs)
		}
	})
}

// An event must not be answered from what was listed before it, nor from a
// listing that had begun before it.
func TestAppearanceListsAnewAfterAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &devices{took: 100 * time.Millisecond}
		a := async.NewAppearance(d.list, time.Hour)
		a.Check(t.Context(), []string{"tap1"})
		d.set(nil, "tap1")
		if errs := a.Check(t.Context(), []string{"tap1"}); errs[0] == nil || d.listings() != 1 {
			t.Errorf("listed within the tick: %v, %d listings", errs, d.listings())
		}
		a.Changed()
		go a.Check(t.Context(), []string{"tap1"})
		synctest.Wait() // its listing is under way
		a.Changed()
		if errs := a.Check(t.Context(), []string{"tap1"}); errs[0] != nil || d.listings() != 3 {
			t.Errorf("after a change during a listing: %v, %d listings, want 3", errs, d.listings())
		}
	})
}

// A listing that hangs holds nobody longer than his context, and is not begun
// again and again.
func TestAppearanceThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &devices{hang: true}
		a := async.NewAppearance(d.list, time.Second)
		var pods sync.WaitGroup
		for i := range 10 {
			pods.Go(func() {
				patience := time.Duration(i+1) * time.Second
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				begun := time.Now()
				errs := a.Check(ctx, []string{"tap1"})
				if !errors.Is(errs[0], context.DeadlineExceeded) || time.Since(begun) != patience {
					t.Errorf("after %v: %v", time.Since(begun), errs)
				}
			})
		}
		pods.Wait()
		if d.listings() != 1 {
			t.Errorf("%d listings", d.listings())
		}
		synctest.Wait() // the last one that left has ended it
		d.mu.Lock()
		d.hang, d.names = false, []string{"tap1"}
		d.mu.Unlock()
		if errs := a.Check(t.Context(), []string{"tap1"}); errs[0] != nil {
			t.Errorf("after it recovered: %v", errs)
		}
	})
}

// Who asks at the moment when the last caller leaves a listing is not told of its end.
func TestAppearanceListingThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		calls := 0
		a := async.NewAppearance(func(ctx context.Context) ([]string, error) {
			if calls++; calls > 1 {
				return []string{"tap1"}, nil
			}
			<-ctx.Done()
			<-release
			return nil, context.Cause(ctx)
		}, time.Second)
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := make(chan []error)
		go func() { cancelled <- a.Check(ctx, []string{"tap1"}) }()
		synctest.Wait()
		cancel()
		if errs := <-cancelled; !errors.Is(errs[0], context.Canceled) {
			t.Errorf("who left: %v", errs)
		}
		go func() { cancelled <- a.Check(t.Context(), []string{"tap1"}) }()
		synctest.Wait()
		close(release)
		if errs := <-cancelled; errs[0] != nil {
			t.Errorf("who came: %v", errs)
		}
	})
}
