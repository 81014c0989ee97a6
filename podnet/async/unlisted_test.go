package async_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// A port that got its number and then lost it, before its session listed it, is
// in error by now and nobody but the step would find out.
func TestPreparedPortThatIsNotListedIsPreparedAgain(t *testing.T) {
	var calls atomic.Int32
	var listed atomic.Bool
	cfg := async.Config{
		Accept: async.AcceptListed,
		Ports:  func(string) (async.PortState, bool) { return async.PortState{Number: 1}, listed.Load() },
		Prepare: func(_ context.Context, keys []podnet.PortKey) []error {
			calls.Add(1)
			return make([]error, len(keys))
		},
	}
	bubble(t, cfg, func(t *testing.T, r *async.Readiness, s *sink, events names) {
		begin(t, r, key(1))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := calls.Load(); got < 10 {
			t.Errorf("prepared %d times in a minute, want one time with every retry", got)
		}
		listed.Store(true)
		before := calls.Load()
		s.setFail(podnet.ErrBusy)
		events <- []string{"port1"}
		time.Sleep(time.Minute)
		synctest.Wait()
		if syncs, _ := s.seen(); len(syncs) == 0 || calls.Load() != before {
			t.Errorf("%d calls of the sink, %d more of the step once it is listed", len(syncs), calls.Load()-before)
		}
	})
}

// What OVSDB has and the OpenFlow session does not is no missing number.
func TestNumberThatTheSessionDoesNotKnow(t *testing.T) {
	cfg := async.Config{
		Accept: async.AcceptLive, NotReadyAfter: time.Second,
		Ports:  func(string) (async.PortState, bool) { return async.PortState{}, false },
		OFPort: func(context.Context, podnet.PortKey) (uint32, error) { return 7, nil },
	}
	bubble(t, cfg, func(t *testing.T, r *async.Readiness, s *sink, _ names) {
		begin(t, r, key(1))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		want := "OVSDB and OpenFlow do not agree: OVSDB says OpenFlow port 7, the OpenFlow session does not list it"
		if _, late := s.seen(); len(late) == 0 || !strings.Contains(late[0], want) {
			t.Errorf("late: %v, want %q", late, want)
		}
	})
}

// A step that forgets a port has not prepared it.
func TestStepWithoutResultIsNoSuccess(t *testing.T) {
	cfg := async.Config{NotReadyAfter: time.Second, Prepare: func(context.Context, []podnet.PortKey) []error { return nil }}
	bubble(t, cfg, func(t *testing.T, r *async.Readiness, s *sink, _ names) {
		begin(t, r, key(1))
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if syncs, late := s.seen(); len(syncs) != 0 || len(late) == 0 || !strings.Contains(late[0], "0 results for 1 ports") || r.Waiting() != 1 {
			t.Errorf("synced %v, late %v, %d wait", syncs, late, r.Waiting())
		}
	})
}
