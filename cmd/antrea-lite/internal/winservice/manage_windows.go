package winservice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/eventlog"
	"golang.org/x/sys/windows/svc/mgr"
)

const (
	// recoveryReset is after how long without a failure the pauses begin anew.
	recoveryReset = 24 * time.Hour
	statePause    = 100 * time.Millisecond
)

// Service is a service as the service manager knows it.
type Service struct {
	Name        string
	DisplayName string
	Description string
}

// Install makes the service, or changes an existing one, to run exe with args at
// every boot. One that fails is started again after a pause.
func (s Service) Install(exe string, args ...string) error {
	m, err := connect()
	if err != nil {
		return err
	}
	defer m.Disconnect()
	conf := mgr.Config{DisplayName: s.DisplayName, Description: s.Description, StartType: mgr.StartAutomatic, ErrorControl: mgr.ErrorNormal}
	service, err := m.OpenService(s.Name)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		service, err = m.CreateService(s.Name, exe, conf, args...)
	} else if err == nil {
		err = update(service, conf, exe, args)
	}
	if err != nil {
		return s.failed("install", err)
	}
	defer service.Close()
	pauses := []mgr.RecoveryAction{{Type: mgr.ServiceRestart, Delay: time.Second}, {Type: mgr.ServiceRestart, Delay: 5 * time.Second}, {Type: mgr.ServiceRestart, Delay: 30 * time.Second}}
	if err := known(service.SetRecoveryActions(pauses, uint32(recoveryReset.Seconds()))); err != nil {
		return s.failed("set what follows a failure", err)
	}
	// An exit code is a failure, too, not only a crash.
	if err := known(service.SetRecoveryActionsOnNonCrashFailures(true)); err != nil {
		return s.failed("set what follows a failure", err)
	}
	return s.installEvents()
}

// update gives an existing service the configuration; what is not ours to say
// (account, dependencies) stays.
func update(service *mgr.Service, conf mgr.Config, exe string, args []string) error {
	have, err := service.Config()
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) { // see known
		have, err = mgr.Config{ServiceType: windows.SERVICE_NO_CHANGE}, nil
	}
	if err != nil {
		return errors.Join(err, service.Close())
	}
	have.DisplayName, have.Description, have.StartType, have.ErrorControl = conf.DisplayName, conf.Description, conf.StartType, conf.ErrorControl
	have.BinaryPathName = commandLine(exe, args)
	if err := known(service.UpdateConfig(have)); err != nil {
		return errors.Join(err, service.Close())
	}
	return nil
}

// known leaves out the error of a service manager that does not know a setting,
// such as Wine's; the rest is in force by then.
func known(err error) error {
	if errors.Is(err, windows.ERROR_INVALID_LEVEL) {
		return nil
	}
	return err
}

// commandLine is what CreateService makes of a program and its arguments.
func commandLine(exe string, args []string) string {
	line := windows.EscapeArg(exe)
	for _, a := range args {
		line += " " + windows.EscapeArg(a)
	}
	return line
}

func (s Service) installEvents() error {
	err := eventlog.InstallAsEventCreate(s.Name, eventlog.Error|eventlog.Warning|eventlog.Info)
	if err == nil {
		return nil
	}
	// The package has no word for "is there already".
	if log, openErr := eventlog.Open(s.Name); openErr == nil {
		return log.Close()
	}
	return s.failed("register with the event log", err)
}

// Uninstall stops the service, removes it and waits until the manager has let go
// of it. None: nothing to do.
func (s Service) Uninstall(ctx context.Context) error {
	err := s.with(func(service *mgr.Service) error {
		if err := s.stop(ctx, service); err != nil {
			return err
		}
		if err := service.Delete(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
			return s.failed("delete", err)
		}
		_ = eventlog.Remove(s.Name) // it need not be there
		return nil
	}, nil)
	if err != nil {
		return err
	}
	return s.awaitGone(ctx)
}

// awaitGone waits for the end of a service that was deleted. The manager keeps it
// until its process has ended and nobody has it open, and no service of its name
// can be made before.
func (s Service) awaitGone(ctx context.Context) error {
	gone := errors.New("gone")
	for {
		if err := s.with(func(*mgr.Service) error { return nil }, gone); errors.Is(err, gone) {
			return nil
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("service %s is deleted, but a program has it open, such as services.msc or the Task Manager: close it: %w", s.Name, context.Cause(ctx))
		case <-time.After(statePause):
		}
	}
}

// Start starts the service and waits until it runs. One that runs is left alone.
func (s Service) Start(ctx context.Context) error {
	return s.with(func(service *mgr.Service) error {
		if err := service.Start(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
			return s.failed("start", err)
		}
		return s.await(ctx, service, svc.Running)
	}, s.absent())
}

// Stop stops the service and waits until it has ended. One that does not run is left alone.
func (s Service) Stop(ctx context.Context) error {
	return s.with(func(service *mgr.Service) error { return s.stop(ctx, service) }, s.absent())
}

func (s Service) stop(ctx context.Context, service *mgr.Service) error {
	if _, err := service.Control(svc.Stop); err != nil && !errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) && !errors.Is(err, windows.ERROR_SERVICE_CANNOT_ACCEPT_CTRL) {
		return s.failed("stop", err)
	}
	return s.await(ctx, service, svc.Stopped)
}

// await waits for a state.
func (s Service) await(ctx context.Context, service *mgr.Service, want svc.State) error {
	for {
		status, err := service.Query()
		switch {
		case err != nil:
			return s.failed("query", err)
		case status.State == want:
			return nil
		case status.State == svc.Stopped:
			return fmt.Errorf("service %s ended with code %d (its own: %d): the event log and its log file say why", s.Name, status.Win32ExitCode, status.ServiceSpecificExitCode)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("service %s is in state %d and not %d: %w", s.Name, status.State, want, context.Cause(ctx))
		case <-time.After(statePause):
		}
	}
}

// with opens the service for do; without one the result is absent.
func (s Service) with(do func(*mgr.Service) error, absent error) error {
	m, err := connect()
	if err != nil {
		return err
	}
	defer m.Disconnect()
	service, err := m.OpenService(s.Name)
	switch {
	case errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST):
		return absent
	case err != nil:
		return s.failed("open", err)
	}
	defer service.Close()
	return do(service)
}

func (s Service) absent() error {
	return fmt.Errorf("service %s is not installed: run `antrea-lite service install`", s.Name)
}

func (s Service) failed(what string, err error) error {
	return fmt.Errorf("service %s: %s: %w", s.Name, what, err)
}

func connect() (*mgr.Mgr, error) {
	m, err := mgr.Connect()
	if err != nil {
		return nil, fmt.Errorf("the service manager cannot be reached: %w: run this as administrator", err)
	}
	return m, nil
}
