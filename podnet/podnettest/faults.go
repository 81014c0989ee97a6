package podnettest

import (
	"context"
	"slices"
	"sync"
)

// Faults makes the calls of a fake fail. The functions run outside the fake's
// lock, so they may block; what they return is returned by the call. The zero
// value does nothing. Methods may be called concurrently.
type Faults struct {
	mu            sync.Mutex
	before, after map[string]func(ctx context.Context) error
	every         func(ctx context.Context, call FaultCall) error
	calls         []string
}

// FaultCall is a call of a fake, for Faults.Every.
type FaultCall struct {
	Op      string // the method
	Subject string // the port's name, or the interface's key as text; "" when the call is about neither
	Done    bool   // the call has had its effect
}

// Before runs fn before every call of the method op ("AddPort", "Install" ...):
// an error means that the call has no effect. nil takes the fault away.
func (f *Faults) Before(op string, fn func(ctx context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = with(f.before, op, fn)
}

// After runs fn after every call of the method op: an error means that the call
// fails although it had its effect.
func (f *Faults) After(op string, fn func(ctx context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after = with(f.after, op, fn)
}

// Every runs fn before and after every call, whatever its method, ahead of what
// Before and After have set. An error makes the call fail, before its effect or
// although it had it. nil takes it away.
func (f *Faults) Every(fn func(ctx context.Context, call FaultCall) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.every = fn
}

func with(m map[string]func(context.Context) error, op string, fn func(context.Context) error) map[string]func(context.Context) error {
	if m == nil {
		m = make(map[string]func(context.Context) error)
	}
	m[op] = fn
	return m
}

// Calls returns the calls so far, each as "Method subject".
func (f *Faults) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// ForgetCalls begins the list of calls anew.
func (f *Faults) ForgetCalls() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

func (f *Faults) enter(ctx context.Context, op, subject string) error {
	f.mu.Lock()
	f.calls = append(f.calls, op+" "+subject)
	every, fn := f.every, f.before[op]
	f.mu.Unlock()
	return run(ctx, FaultCall{Op: op, Subject: subject}, every, fn)
}

func (f *Faults) leave(ctx context.Context, op, subject string) error {
	f.mu.Lock()
	every, fn := f.every, f.after[op]
	f.mu.Unlock()
	return run(ctx, FaultCall{Op: op, Subject: subject, Done: true}, every, fn)
}

func run(ctx context.Context, call FaultCall, every func(context.Context, FaultCall) error, fn func(context.Context) error) error {
	if every != nil {
		if err := every(ctx, call); err != nil {
			return err
		}
	}
	if fn != nil {
		return fn(ctx)
	}
	return nil
}
