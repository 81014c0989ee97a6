package socket

import (
	"errors"
	"net"
	"sync"
	"time"
)

// pipeListener stands before a pipe listener whose Close can hang (go-winio issues
// 281, 291 and 357) and to which clients can connect only while an Accept is
// under way. So it always accepts, and a shutdown never depends on Close.
type pipeListener struct {
	inner net.Listener
	limit time.Duration

	accepted chan accepted
	closing  chan struct{}
	once     sync.Once
	closed   chan struct{} // inner's Close has returned
	err      error         // what it returned, to be read after closed
}

type accepted struct {
	conn net.Conn
	err  error
}

func newPipeListener(inner net.Listener, limit time.Duration) *pipeListener {
	l := &pipeListener{inner: inner, limit: limit, accepted: make(chan accepted), closing: make(chan struct{}), closed: make(chan struct{})}
	go l.loop()
	return l
}

// loop accepts until Close. An error is handed on, like a connection: whoever
// gets it decides on the pause before the next.
func (l *pipeListener) loop() {
	for {
		conn, err := l.inner.Accept()
		if err != nil && !errors.Is(err, net.ErrClosed) {
			err = passing{err}
		}
		select {
		case l.accepted <- accepted{conn, err}:
		case <-l.closing:
			if conn != nil {
				conn.Close()
			}
			return
		}
	}
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case <-l.closing:
		return nil, net.ErrClosed
	default:
	}
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.closing:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It may be called more than once.
func (l *pipeListener) Close() error {
	l.once.Do(func() {
		close(l.closing)
		go func() {
			defer close(l.closed)
			l.err = l.inner.Close()
		}()
	})
	timer := time.NewTimer(l.limit)
	defer timer.Stop()
	select {
	case <-l.closed:
		return l.err
	case <-timer.C:
		return errors.New("the named pipe did not close in time; it goes with the process")
	}
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return l.inner.Addr() }

// passing is a failed Accept after which the next may succeed; net/http waits a
// moment and goes on.
type passing struct{ error }

func (e passing) Unwrap() error   { return e.error }
func (e passing) Timeout() bool   { return false }
func (e passing) Temporary() bool { return true }
