package prepare

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestHungCallHoldsOneGoroutine: however often the agent asks.
func TestHungCallHoldsOneGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		release := make(chan struct{})
		h := newHNS(func(string, string, string) ([]byte, error) {
			calls.Add(1)
			<-release
			return []byte("late"), nil
		})
		for i := range 5 {
			if _, err := h.Call(t.Context(), "GET", "/", ""); err == nil || !strings.Contains(err.Error(), "no answer") {
				t.Errorf("call %d: %v", i, err)
			}
		}
		if n := calls.Load(); n != 1 {
			t.Errorf("%d calls are under way", n)
		}
		close(release)
		synctest.Wait()
		if answer, err := h.Call(t.Context(), "GET", "/", ""); string(answer) != "late" || err != nil {
			t.Errorf("once it has returned: %q, %v", answer, err)
		}
		failed := errors.New("refused")
		h = newHNS(func(string, string, string) ([]byte, error) { return nil, failed })
		for range 2 {
			if _, err := h.Call(t.Context(), "GET", "/", ""); !errors.Is(err, failed) {
				t.Error(err)
			}
		}
	})
}
