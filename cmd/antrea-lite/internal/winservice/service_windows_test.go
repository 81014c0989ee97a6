package winservice

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"
)

// child makes the test binary the service: its next arguments are the name of
// the service and the file to which it tells what happens to it.
const child = "-service-child"

func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == child {
		name, file := os.Args[2], os.Args[3]
		err := Run(name, time.Second, func(ctx context.Context) error {
			if strings.HasPrefix(name, "failing") {
				return errors.New("it cannot work")
			}
			tell(file, "runs")
			<-ctx.Done()
			tell(file, "stops")
			return nil
		})
		if err != nil {
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func tell(file, what string) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	fmt.Fprintln(f, what)
	f.Close()
}

func told(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// install makes this test binary a service.
func install(t *testing.T, name string) (Service, string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "told")
	s := Service{Name: name, DisplayName: "podnet test", Description: "made by a test"}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.Uninstall(ctx); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	if err := s.Install(exe, child, name, file); err != nil {
		t.Fatal(err)
	}
	return s, file
}

// TestLifeOfAService goes through what an operator does, each step twice: a
// repeated one finds nothing to do.
func TestLifeOfAService(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, file := install(t, fmt.Sprintf("podnet-%d", os.Getpid()))
	if _, again := install(t, s.Name); again == file {
		t.Fatal("the same file")
	} else {
		file = again // installed anew with other arguments: those count
	}
	for range 2 {
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for told(t, file) != "runs" {
		select {
		case <-ctx.Done():
			t.Fatalf("it told %q", told(t, file))
		case <-time.After(20 * time.Millisecond):
		}
	}
	for range 2 {
		if err := s.Stop(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := told(t, file); got != "runs stops" {
		t.Errorf("it told %q", got)
	}
	for range 2 {
		if err := s.Uninstall(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for what, err := range map[string]error{"start": s.Start(ctx), "stop": s.Stop(ctx)} {
		if err == nil || !strings.Contains(err.Error(), "service install") {
			t.Errorf("%s without a service: %v", what, err)
		}
	}
}

// TestFailureIsSeenAndTriedAgain: the manager knows the exit code and what follows.
func TestFailureIsSeenAndTriedAgain(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, _ := install(t, fmt.Sprintf("failing-%d", os.Getpid()))
	m, err := mgr.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer m.Disconnect()
	service, err := m.OpenService(s.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	actions, err := service.RecoveryActions()
	if known(err) != nil || err == nil && (len(actions) != 3 || actions[0].Type != mgr.ServiceRestart || actions[0].Delay != time.Second) {
		t.Errorf("recovery %+v, %v", actions, err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.await(ctx, service, svc.Stopped); err != nil {
		t.Fatal(err)
	}
	status, err := service.Query()
	if err != nil || status.ServiceSpecificExitCode != failed {
		t.Errorf("status %+v, %v", status, err)
	}
}

// TestOnlyTheManagerStartsIt: by hand it ends at once and says what to do.
func TestOnlyTheManagerStartsIt(t *testing.T) {
	err := Run("podnet-by-hand", time.Second, func(context.Context) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "--windows-service") {
		t.Errorf("%v", err)
	}
}
