package socket

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/antrea-lite/podnet/cmd/internal/sockettest"
)

// TestOnlyAdministratorsAndSystem reads the access list back from the pipe itself.
func TestOnlyAdministratorsAndSystem(t *testing.T) {
	path := sockettest.Path(t)
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := winio.DialPipe(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	handle := windows.Handle(server.(interface{ Fd() uintptr }).Fd())
	sd, err := windows.GetSecurityInfo(handle, windows.SE_KERNEL_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	if got := sd.String(); !strings.Contains(got, "(A;;GA;;;BA)(A;;GA;;;SY)") && !strings.Contains(got, "(A;;FA;;;BA)(A;;FA;;;SY)") {
		t.Errorf("access list %s", got)
	}
}

func TestSecondListenerIsRefused(t *testing.T) {
	path := sockettest.Path(t)
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process") || !strings.Contains(err.Error(), path) {
		t.Errorf("second listener: %v", err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	again, err := Listen(path)
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	again.Close()
}

// TestStartDialStop goes through what an agent's pipe lives through, many times
// and with a watchdog: go-winio has hung in Close and at the first connect.
func TestStartDialStop(t *testing.T) {
	path := sockettest.Path(t)
	watchdog := time.AfterFunc(2*time.Minute, func() { panic("a cycle of start, dial and stop hangs") })
	defer watchdog.Stop()
	for round := range 100 {
		l, err := Listen(path)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		var served sync.WaitGroup
		served.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				served.Go(func() {
					defer conn.Close()
					line, err := bufio.NewReader(conn).ReadString('\n')
					if err == nil {
						_, _ = io.WriteString(conn, line)
					}
				})
			}
		})
		// Clients that leave at once, and one that asks.
		for range round % 3 {
			if conn, err := winio.DialPipe(path, nil); err == nil {
				conn.Close()
			}
		}
		if err := echo(path, round); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := l.Close(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		served.Wait()
	}
}

func echo(path string, round int) error {
	conn, err := winio.DialPipe(path, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "round %d\n", round); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) || line != fmt.Sprintf("round %d\n", round) {
		return fmt.Errorf("got %q, %w", line, err)
	}
	return nil
}

// TestManyClients: clients that come while no Accept is under way find the pipe busy, and get in.
func TestManyClients(t *testing.T) {
	path := sockettest.Path(t)
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	var served, clients sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
				return
			}
			served.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	timeout := 30 * time.Second
	for i := range 60 {
		clients.Go(func() {
			conn, err := winio.DialPipe(path, &timeout)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if _, err := fmt.Fprintf(conn, "%04d", i); err != nil {
				t.Error(err)
			}
			b := make([]byte, 4)
			if _, err := io.ReadFull(conn, b); err != nil || string(b) != fmt.Sprintf("%04d", i) {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	clients.Wait()
	if err := l.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	served.Wait()
}
