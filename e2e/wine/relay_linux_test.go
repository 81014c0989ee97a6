package wine

import (
	"io"
	"net"
	"sync"
	"testing"
)

// joinTCP listens on loopback TCP and joins each connection to the unix socket:
// Wine has no unix sockets. When the socket is not there, as before the bridge
// is made, the connection ends.
func joinTCP(t *testing.T, unixSocket string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	stopped := make(chan struct{})
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { join(c, unixSocket, stopped) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(stopped)
		conns.Wait()
	})
	return l.Addr().String()
}

func join(c net.Conn, unixSocket string, stopped <-chan struct{}) {
	defer c.Close()
	s, err := net.Dial("unix", unixSocket)
	if err != nil {
		return
	}
	defer s.Close()
	over := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		go func() {
			io.Copy(way[0], way[1])
			over <- struct{}{}
		}()
	}
	select {
	case <-over:
	case <-stopped:
	}
}
