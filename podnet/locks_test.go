package podnet

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyLocksExclude(t *testing.T) {
	l := newKeyLocks[string]()
	var inside, outside [2]atomic.Int32
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 500 {
				k := (g + i) % 2
				key := []string{"a", "b"}[k]
				unlock, err := l.lock(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				if inside[k].Add(1) != 1 {
					t.Error("two holders")
				}
				inside[k].Add(-1)
				unlock()
				if unlock, ok := l.tryLock(key, nil); ok {
					if inside[k].Add(1) != 1 {
						t.Error("two holders by tryLock")
					}
					inside[k].Add(-1)
					unlock()
					outside[k].Add(1)
				}
			}
		})
	}
	group.Wait()
	if len(l.locks) != 0 {
		t.Errorf("%d locks are kept for nobody", len(l.locks))
	}
	if outside[0].Load()+outside[1].Load() == 0 {
		t.Error("tryLock never succeeded")
	}
}

func TestKeyLockWaitEndsWithItsContext(t *testing.T) {
	l := newKeyLocks[string]()
	unlock, err := l.lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := l.tryLock("a", nil); ok {
		t.Error("tryLock of a held lock")
	}
	why := errors.New("overtaken in a test")
	ctx, cancel := context.WithCancelCause(t.Context())
	result := make(chan error, 1)
	go func() { _, err := l.lock(ctx, "a"); result <- err }()
	cancel(why)
	if err := <-result; !errors.Is(err, why) {
		t.Errorf("lock: %v, want the cause", err)
	}
	unlock()
	if unlock, ok := l.tryLock("a", nil); !ok {
		t.Error("the waiter that left took the lock with it")
	} else {
		unlock()
	}
	if len(l.locks) != 0 {
		t.Errorf("%d locks are kept for nobody", len(l.locks))
	}
}

func TestKeyLockHolderGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newKeyLocks[string]()
		var asked atomic.Int32
		unlock, ok := l.tryLock("a", func() { asked.Add(1) })
		if !ok {
			t.Fatal("tryLock")
		}
		if _, ok := l.tryLock("a", nil); ok || asked.Load() != 0 {
			t.Errorf("another try is no reason to give way: asked %d times", asked.Load())
		}
		got := make(chan func(), 1)
		go func() {
			unlock, err := l.lock(context.Background(), "a")
			if err != nil {
				t.Error(err)
			}
			got <- unlock
		}()
		synctest.Wait()
		if asked.Load() != 1 {
			t.Errorf("asked %d times, want 1", asked.Load())
		}
		unlock()
		(<-got)()
		if len(l.locks) != 0 {
			t.Errorf("%d locks are kept for nobody", len(l.locks))
		}
	})
}

func TestReplayLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newReplayLock()
		s1, release1, err := l.share(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, release2, err := l.share(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		release2()
		if s1.Err() != nil {
			t.Error("a share ended without a replay")
		}
		alone := make(chan func(), 1)
		go func() {
			release, err := l.exclude(context.Background())
			if err != nil {
				t.Error(err)
			}
			alone <- release
		}()
		synctest.Wait()
		if !errors.Is(context.Cause(s1), errReplay) {
			t.Errorf("the sharer was not told: %v", context.Cause(s1))
		}
		// Newcomers let the replay go first.
		shared := make(chan error, 1)
		go func() {
			_, release, err := l.share(context.Background())
			if err == nil {
				release()
			}
			shared <- err
		}()
		synctest.Wait()
		select {
		case <-alone:
			t.Error("alone while shared")
		case <-shared:
			t.Error("a newcomer overtook the replay")
		default:
		}
		release1()
		release := <-alone
		synctest.Wait()
		if len(shared) != 0 {
			t.Error("shared while alone")
		}
		// Waits end with their contexts, and a replay that gives up lets others in.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.exclude(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("exclude: %v", err)
		}
		if _, _, err := l.share(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("share: %v", err)
		}
		release()
		if err := <-shared; err != nil {
			t.Error(err)
		}
	})
}

func TestUndoStack(t *testing.T) {
	var order []string
	var u undoStack
	step := func(name string, err error) {
		u.push(name, func(context.Context) error { order = append(order, name); return err })
	}
	failed := errors.New("failed")
	step("first", nil)
	step("second", failed)
	step("third", nil)
	err := u.run(t.Context())
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "second") {
		t.Errorf("run: %v", err)
	}
	if got := strings.Join(order, " "); got != "third second" {
		t.Errorf("order %q; what lies below a failure must not run", got)
	}
	if len(u.steps) != 2 {
		t.Errorf("%d steps are left, want 2", len(u.steps))
	}
}

func TestErrorClasses(t *testing.T) {
	for _, test := range []struct {
		err                    error
		gone, notSent, passing bool
	}{
		{ErrNoPort, true, true, false},
		{ErrNoNumber, true, true, false},
		{&PortError{Name: "p", OFPort: -1}, true, true, false},
		{ErrNotConnected, false, true, true},
		{join(ErrNotConnected, context.DeadlineExceeded), false, true, true},
		{context.Canceled, false, false, true},
		{ErrOutcomeUnknown, false, false, true},
		{join(ErrOutcomeUnknown, ErrNotConnected), false, false, true},
		{errors.New("refused"), false, true, false},
	} {
		if portGone(test.err) != test.gone || notSent(test.err) != test.notSent || passing(test.err) != test.passing {
			t.Errorf("%v: gone %v, not sent %v, passing %v", test.err, portGone(test.err), notSent(test.err), passing(test.err))
		}
	}
	if join(nil, nil) != nil || join(nil, ErrNoPort) != ErrNoPort {
		t.Error("join")
	}
	if text := (&PortError{Name: "p", OFPort: -1}).Error(); !strings.Contains(text, "gives no reason") {
		t.Errorf("%q", text)
	}
}
