package winpipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
)

// listen opens a pipe of the kind that Open vSwitch makes: message type, 65,000 bytes of buffer.
func listen(t *testing.T) (path string, l net.Listener) {
	t.Helper()
	path = fmt.Sprintf(`\\.\pipe\C:podnet-%d-%s`, os.Getpid(), strings.NewReplacer("/", "-").Replace(t.Name()))
	l, err := winio.ListenPipe(path, &winio.PipeConfig{MessageMode: true, InputBufferSize: 65000, OutputBufferSize: 65000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return path, l
}

// echo returns every byte of every connection until the listener closes.
func echo(t *testing.T, l net.Listener) {
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := Dial(ctx, path, "the test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestBytesPassAPipeOfMessageType(t *testing.T) {
	path, l := listen(t)
	echo(t, l)
	conn := dial(t, path)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<16) // 1 MiB: more than the buffers of the pipe
	var wg sync.WaitGroup
	wg.Go(func() {
		for b := sent; len(b) > 0; {
			n, err := conn.Write(b[:min(len(b), 100_000)])
			if err != nil {
				t.Error(err)
				return
			}
			b = b[n:]
		}
	})
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if !bytes.Equal(got, sent) {
		t.Error("what came back differs from what was sent")
	}
}

func TestDeadlineAndCloseEndARead(t *testing.T) {
	path, l := listen(t)
	echo(t, l)
	conn := dial(t, path)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("Read at its deadline: %v", err)
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := conn.Read(make([]byte, 1))
		ended <- err
	}()
	conn.Close()
	if err := <-ended; err == nil {
		t.Error("Read of a closed pipe succeeded")
	}
}

func TestAMissingPipeIsAnErrorAtOnce(t *testing.T) {
	_, err := Dial(t.Context(), `C:\podnet\no\such.sock`, "ovsdb-server")
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), `\\.\pipe\C:podnetnosuch.sock`) || !strings.Contains(err.Error(), "is ovsdb-server running") {
		t.Errorf("%v", err)
	}
}

// A listener that does not accept has no free instance.
func TestABusyPipeIsWaitedFor(t *testing.T) {
	path, l := listen(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := Dial(ctx, path, "ovs-vswitchd")
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "busy") || !strings.Contains(err.Error(), "is ovs-vswitchd stuck") {
		t.Fatalf("with nobody accepting: %v", err)
	}
	dialled := make(chan error)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		conn, err := Dial(ctx, path, "ovs-vswitchd")
		if err == nil {
			conn.Close()
		}
		dialled <- err
	}()
	echo(t, l)
	if err := <-dialled; err != nil {
		t.Errorf("once somebody accepts: %v", err)
	}
}

func TestAnEndedContextIsNotABusyPipe(t *testing.T) {
	path, _ := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, path, "ovs-vswitchd"); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "busy") {
		t.Errorf("%v", err)
	}
}
