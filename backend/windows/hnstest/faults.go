package hnstest

import (
	"sync"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
)

// Fault is what happens to calls of one operation. Its parts come in this order:
// the call waits for Delay, then until Hang is closed, fails with Err without
// effect, or has its effect and fails with After.
type Fault struct {
	Delay time.Duration
	Hang  <-chan struct{}
	Err   error
	After error
	// Times is how many calls it is for; 0: all of them.
	Times int
}

// Set gives all calls of op a fault, in place of the one they had; the zero
// Fault takes it away. Calls that hang or wait already are not touched.
func (h *HNS) Set(op windows.Op, f Fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[op] = &f
}

// HangUp lets calls of op block until release is called.
func (h *HNS) HangUp(op windows.Op) (release func()) {
	gate := make(chan struct{})
	h.Set(op, Fault{Hang: gate})
	return sync.OnceFunc(func() {
		h.Set(op, Fault{})
		close(gate)
	})
}

// enter notes a call and lives through its fault; leave ends it.
func (h *HNS) enter(op windows.Op, subject string) (f Fault, err error) {
	h.mu.Lock()
	h.calls = append(h.calls, string(op)+" "+subject)
	h.running[op]++
	h.most[op] = max(h.most[op], h.running[op])
	if have := h.faults[op]; have != nil {
		f = *have
		if have.Times == 1 {
			delete(h.faults, op)
		} else if have.Times > 1 {
			have.Times--
		}
	}
	h.mu.Unlock()
	if f.Delay > 0 {
		time.Sleep(f.Delay)
	}
	if f.Hang != nil {
		<-f.Hang
	}
	return f, f.Err
}

func (h *HNS) leave(op windows.Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[op]--
}

// Calls returns the calls so far, each as "operation subject".
func (h *HNS) Calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.calls...)
}

// ForgetCalls begins the list of calls anew.
func (h *HNS) ForgetCalls() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = nil
}

// Running is how many calls of op are inside now, and how many there were at
// most at one time.
func (h *HNS) Running(op windows.Op) (now, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running[op], h.most[op]
}
