package socket

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/cmd/internal/sockettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, sockettest.Lasting()) }

// pipe is a fake listener. Accept waits for a connection or an error; Close
// hangs for as long as the test says.
type pipe struct {
	conns chan accepted
	done  chan struct{} // closed by the first Close
	hang  time.Duration
}

func newPipe(hang time.Duration) *pipe {
	return &pipe{conns: make(chan accepted), done: make(chan struct{}), hang: hang}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case a := <-p.conns:
		return a.conn, a.err
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	time.Sleep(p.hang)
	close(p.done)
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "fake"} }

// TestCloseHasItsOwnDeadline: a Close that hangs (go-winio issues 281, 291, 357)
// holds up neither Accept nor whoever shuts down.
func TestCloseHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipeListener(newPipe(time.Hour), 2*time.Second)
		accepts := make(chan error)
		go func() {
			_, err := l.Accept()
			accepts <- err
		}()
		synctest.Wait()
		began := time.Now()
		if err := l.Close(); err == nil {
			t.Error("Close reports success while the pipe hangs")
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("Close took %s", took)
		}
		if err := <-accepts; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept: %v", err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close: %v", err)
		}
		time.Sleep(2 * time.Hour)
		if err := l.Close(); err != nil {
			t.Errorf("Close once the pipe is closed: %v", err)
		}
	})
}

// TestFailedAcceptIsNotTheEnd: net/http goes on after a temporary error only.
func TestFailedAcceptIsNotTheEnd(t *testing.T) {
	p := newPipe(0)
	l := newPipeListener(p, time.Minute)
	defer l.Close()
	broken := errors.New("no data")
	p.conns <- accepted{err: broken}
	_, err := l.Accept()
	var temporary interface{ Temporary() bool } // what net/http asks for
	if !errors.As(err, &temporary) || !temporary.Temporary() || !errors.Is(err, broken) {
		t.Errorf("%v is not temporary", err)
	}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	p.conns <- accepted{conn: ours}
	conn, err := l.Accept()
	if err != nil || conn != ours {
		t.Fatalf("%v, %v", conn, err)
	}
	conn.Close()
}

// TestUnclaimedConnectionIsClosed: who connected while nobody accepted must not wait for ever.
func TestUnclaimedConnectionIsClosed(t *testing.T) {
	p := newPipe(0)
	l := newPipeListener(p, time.Minute)
	ours, theirs := net.Pipe()
	p.conns <- accepted{conn: ours}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	theirs.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := theirs.Read(make([]byte, 1)); err == nil || errors.Is(err, net.ErrClosed) {
		t.Errorf("read: %v", err)
	} else if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		t.Error("the connection stays open")
	}
}
