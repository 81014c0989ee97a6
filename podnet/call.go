package podnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// OpError is the error of Add, Delete and Check. It says whose operation
// failed in which step and after how long; Err has the cause.
type OpError struct {
	Op      Op
	Key     ifstore.Key
	Pod     ifstore.Pod
	Step    string
	Elapsed time.Duration
	Err     error
}

func (e *OpError) Error() string {
	pod := ""
	if e.Pod.String() != "" {
		pod = ", Pod " + e.Pod.String()
		if e.Pod.UID != "" {
			pod += " (UID " + e.Pod.UID + ")"
		}
	}
	return fmt.Sprintf("%s container %s, interface %s%s: step %s failed after %v: %v",
		e.Op, e.Key.ContainerID, e.Key.IfName, pod, e.Step, e.Elapsed.Round(time.Millisecond), e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// call is one running operation: it times the steps and names them in errors.
type call struct {
	observe func(Call)
	op      Op
	key     ifstore.Key
	pod     ifstore.Pod
	begun   time.Time
	steps   []StepTime
}

func (n *Network) startCall(op Op, key ifstore.Key, pod ifstore.Pod) *call {
	return &call{observe: n.cfg.Observer.Call, op: op, key: key, pod: pod, begun: time.Now()}
}

// setPod names the Pod once it is known.
func (c *call) setPod(pod ifstore.Pod) {
	if c != nil {
		c.pod = pod
	}
}

// step runs fn as the named step. A nil call runs it unobserved.
func (c *call) step(name string, fn func() error) error {
	if c == nil {
		return fn()
	}
	begun := time.Now()
	c.steps = append(c.steps, StepTime{Name: name})
	at := len(c.steps) - 1
	defer func() { c.steps[at].Duration = time.Since(begun) }() // also when fn panics
	return fn()
}

// end reports the call and returns err with the context it needs. When the call
// was overtaken, that is the error: what the step said about its context is noise.
func (c *call) end(ctx context.Context, err error) error {
	elapsed := time.Since(c.begun)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrOvertaken) {
			err = cause
		}
		step := "start"
		if len(c.steps) > 0 {
			step = c.steps[len(c.steps)-1].Name
		}
		err = &OpError{Op: c.op, Key: c.key, Pod: c.pod, Step: step, Elapsed: elapsed, Err: err}
	}
	if c.observe != nil {
		c.observe(Call{Op: c.op, Key: c.key, Pod: c.pod, Err: err, Duration: elapsed, Steps: c.steps})
	}
	return err
}
