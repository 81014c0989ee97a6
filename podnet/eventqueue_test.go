package podnet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func eventOf(container string, kind podnet.EventType) podnet.Event {
	return podnet.Event{Type: kind, Key: keyOf(container), Message: container + " " + string(kind)}
}

// drain takes what the queue holds without waiting for more.
func drain(q *podnet.EventQueue) (texts []string) {
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan string)
	go func() {
		defer close(got)
		for {
			e, err := q.Next(ctx)
			if err != nil {
				return
			}
			got <- e.Message
		}
	}()
	for {
		synctest.Wait()
		select {
		case text := <-got:
			texts = append(texts, text)
			continue
		default:
		}
		cancel()
		<-got
		return texts
	}
}

func TestEventQueueKeepsTheLatestStateOfEachPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := podnet.NewEventQueue(8)
		for _, e := range []podnet.Event{
			eventOf("a", podnet.NetworkNotReady), eventOf("b", podnet.NetworkNotReady),
			eventOf("a", podnet.NetworkReady), eventOf("c", podnet.NetworkNotReady),
		} {
			q.Event(t.Context(), e)
		}
		got := fmt.Sprint(drain(q))
		if want := "[a NetworkReady b NetworkNotReady c NetworkNotReady]"; got != want || q.Dropped() != 0 {
			t.Errorf("got %s, %d dropped, want %s", got, q.Dropped(), want)
		}
		// What was taken does not hold the next one of the same Pod back.
		q.Event(t.Context(), eventOf("a", podnet.NetworkNotReady))
		if got := fmt.Sprint(drain(q)); got != "[a NetworkNotReady]" {
			t.Errorf("second round: %s", got)
		}
	})
}

func TestEventQueueDropsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := podnet.NewEventQueue(3)
		for i := range 10 {
			q.Event(t.Context(), eventOf(fmt.Sprint("c", i), podnet.NetworkReady))
		}
		if got := fmt.Sprint(drain(q)); got != "[c7 NetworkReady c8 NetworkReady c9 NetworkReady]" || q.Dropped() != 7 {
			t.Errorf("got %s, %d dropped", got, q.Dropped())
		}
	})
}

func TestEventQueueNextEndsWithItsContext(t *testing.T) {
	q := podnet.NewEventQueue(0)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	q.Event(ctx, eventOf("a", podnet.NetworkReady))
	cancel(enough)
	if _, err := q.Next(ctx); !errors.Is(err, enough) {
		t.Errorf("Next: %v", err)
	}
	if e, err := q.Next(t.Context()); err != nil || e.Key != keyOf("a") {
		t.Errorf("the event was lost: %+v %v", e, err)
	}
}

// Many producers, one consumer: nothing is lost but what is replaced, and the
// last state of every Pod arrives.
func TestEventQueueUnderLoad(t *testing.T) {
	const pods, rounds = 50, 40
	q := podnet.NewEventQueue(pods)
	var producers sync.WaitGroup
	for p := range pods {
		producers.Go(func() {
			for r := range rounds {
				kind := podnet.NetworkNotReady
				if r == rounds-1 {
					kind = podnet.NetworkReady
				}
				q.Event(t.Context(), eventOf(fmt.Sprint("c", p), kind))
			}
		})
	}
	ready := map[ifstore.Key]bool{}
	for len(ready) < pods {
		e, err := q.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ready[e.Key] {
			t.Errorf("%s: an event after the last", e.Message)
		}
		if e.Type == podnet.NetworkReady {
			ready[e.Key] = true
		}
	}
	producers.Wait()
	if q.Dropped() != 0 {
		t.Errorf("%d dropped", q.Dropped())
	}
}
