package winservice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
)

// failed is the service's own exit code when its work ended with an error. The
// service manager shows it and starts the service again.
const failed = 1

// Run runs work as the service of that name until the service manager asks it
// to stop, which ends work's context; stopTime is what the manager is told that
// the stop may take. A failure is written to the event log, since a service has
// nobody else to tell. It must be called in a process that the service manager
// started; whether this is one has to be told by a flag, because what
// svc.IsWindowsService looks at is not the same everywhere.
func Run(name string, stopTime time.Duration, work func(context.Context) error) error {
	h := &handler{work: work, stopTime: stopTime}
	log, err := eventlog.Open(name)
	if err == nil {
		defer log.Close()
		h.report = func(text string) { _ = log.Error(failed, text) } // nobody is left to hear of its failure
	} else {
		h.report = func(string) {}
	}
	if err := svc.Run(name, h); err != nil {
		return fmt.Errorf("service %s: %w: only the service manager can start it so: use `antrea-lite service start`, or leave --windows-service out", name, err)
	}
	return h.err
}

// handler is the conversation with the service manager.
type handler struct {
	work     func(context.Context) error
	stopTime time.Duration
	report   func(string)
	err      error // how work ended
}

// Execute implements svc.Handler.
func (h *handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (specific bool, code uint32) {
	status <- svc.Status{State: svc.StartPending}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- h.work(ctx) }()
	running := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	status <- running
	for {
		select {
		case h.err = <-done:
			if h.err != nil && !errors.Is(h.err, context.Canceled) {
				h.report(h.err.Error())
				return true, failed
			}
			return false, 0
		case r := <-requests:
			switch r.Cmd {
			case svc.Interrogate:
				status <- running
			case svc.Stop, svc.Shutdown:
				running = svc.Status{State: svc.StopPending, WaitHint: uint32(h.stopTime.Milliseconds())}
				status <- running
				cancel()
			}
		}
	}
}
