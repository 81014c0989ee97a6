// Command piperelay listens on named pipes and joins each connection to one of a
// TCP server, so that programs under Wine find a Linux Open vSwitch where they
// find Open vSwitch on Windows:
//
//	piperelay.exe \\.\pipe\C:openvswitchvarrunopenvswitchdb.sock=127.0.0.1:6640
package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/Microsoft/go-winio"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "piperelay:", err)
		os.Exit(1)
	}
}

func run(pairs []string) error {
	errs := make(chan error, len(pairs))
	for _, p := range pairs {
		pipe, addr, ok := strings.Cut(p, "=")
		if !ok {
			return fmt.Errorf("%q is not PIPE=HOST:PORT", p)
		}
		l, err := winio.ListenPipe(pipe, &winio.PipeConfig{InputBufferSize: 64 << 10, OutputBufferSize: 64 << 10})
		if err != nil {
			return fmt.Errorf("%s: %w", pipe, err)
		}
		go func() { errs <- serve(l, addr) }()
	}
	fmt.Println("ready")
	return <-errs
}

func serve(l net.Listener, addr string) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go join(conn, addr)
	}
}

func join(pipe net.Conn, addr string) {
	defer pipe.Close()
	server, err := net.Dial("tcp", addr)
	if err != nil {
		return // the client sees its connection end, as with a switch that stops
	}
	defer server.Close()
	// The end of either direction ends both: a pipe has no half-close.
	var once sync.Once
	over := make(chan struct{})
	for _, way := range [][2]net.Conn{{pipe, server}, {server, pipe}} {
		go func() {
			io.Copy(way[0], way[1])
			once.Do(func() { close(over) })
		}()
	}
	<-over
}
