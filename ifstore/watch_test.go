package ifstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
)

func TestWatch(t *testing.T) {
	s := ifstore.New()
	s.Put(record(1))
	w := s.Watch()
	next := func() []ifstore.Change {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		changes, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	if list := next(); len(list) != 1 || list[0].Interface.Key != key(1) || list[0].Deleted {
		t.Errorf("list %+v", list)
	}
	s.Put(record(2)) // comes and goes unseen
	s.Delete(key(2))
	s.Delete(key(1))
	s.Put(record(3))
	for n := range 50 {
		if _, err := s.Update(key(3), "", func(i *ifstore.Interface) error { i.MTU = n; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	changes := next()
	if len(changes) != 2 || !changes[0].Deleted || changes[0].Interface.Key != key(1) || changes[1].Interface.MTU != 49 {
		t.Errorf("changes %+v", changes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context: %v", err)
	}
	result := make(chan error, 1)
	go func() { _, err := w.Next(context.Background()); result <- err }()
	w.Close()
	if err := <-result; !errors.Is(err, ifstore.ErrWatchClosed) {
		t.Errorf("Next of a closed watch: %v", err)
	}
}

// A watcher that applies what it reads ends with what the store has, whatever
// happened in between.
func TestConcurrentUse(t *testing.T) {
	s := ifstore.New()
	var writers, readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		w := s.Watch()
		readers.Go(func() {
			defer w.Close()
			seen := make(map[ifstore.Key]ifstore.Interface)
			for {
				changes, err := w.Next(ctx)
				if err != nil {
					break
				}
				for _, c := range changes {
					if c.Deleted {
						delete(seen, c.Interface.Key)
					} else {
						seen[c.Interface.Key] = c.Interface
					}
				}
				done, ok := seen[ifstore.Key{ContainerID: "last", IfName: "eth0"}]
				if !ok {
					continue
				}
				delete(seen, done.Key)
				for _, i := range s.List() {
					if diff := cmp.Diff(i, seen[i.Key], compareNetip...); i.Key != done.Key && diff != "" {
						t.Errorf("the watcher ends with another record (-store +seen):\n%s", diff)
					}
				}
				if len(seen) != s.Len()-1 {
					t.Errorf("the watcher ends with %d entries, the store with %d", len(seen), s.Len()-1)
				}
				return
			}
			t.Error("the watch ended early")
		})
	}
	for range 4 {
		writers.Go(func() {
			for range 2000 {
				n := rand.IntN(20)
				switch rand.IntN(4) {
				case 0:
					s.Put(record(n))
				case 1:
					s.Delete(key(n))
				case 2:
					_, _ = s.Update(key(n), "", func(i *ifstore.Interface) error { i.OFPort++; return nil })
				case 3:
					s.ByOFPort(uint32(n))
					s.ByIP(record(n).IPs()[0])
					s.List()
				}
			}
		})
	}
	writers.Wait()
	s.Put(ifstore.Interface{Key: ifstore.Key{ContainerID: "last", IfName: "eth0"}})
	readers.Wait()
	cancel()
}
