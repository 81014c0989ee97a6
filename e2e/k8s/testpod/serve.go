package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// Ports of the servers.
const (
	httpPort   = 8080
	digestPort = 8081
	udpPort    = 8082
)

// serve runs the servers until one of them fails.
func serve() error {
	digests, err := net.Listen("tcp", fmt.Sprint(":", digestPort))
	if err != nil {
		return err
	}
	datagrams, err := net.ListenUDP("udp", &net.UDPAddr{Port: udpPort})
	if err != nil {
		return err
	}
	failed := make(chan error, 3)
	go func() { failed <- serveDigests(digests) }()
	go func() { failed <- echo(datagrams) }()
	// Last, because the readiness probe asks it.
	go func() { failed <- http.ListenAndServe(fmt.Sprint(":", httpPort), http.HandlerFunc(whoAmI)) }()
	return <-failed
}

// whoAmI answers with the Pod's name and the address that it sees the caller at.
func whoAmI(w http.ResponseWriter, r *http.Request) {
	host, err := os.Hostname()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	caller, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(w, "%s %s\n", host, caller)
}

// serveDigests reads each connection to its end and answers with the SHA-256.
func serveDigests(l net.Listener) error {
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			sum := sha256.New()
			if _, err := io.Copy(sum, conn); err == nil {
				// The client notices what it does not get.
				_, _ = conn.Write(sum.Sum(nil))
			}
		}()
	}
}

// echo sends every datagram back.
func echo(conn *net.UDPConn) error {
	buf := make([]byte, 1<<16)
	for {
		size, from, err := conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		// An ICMP error about an earlier answer is reported here.
		if err == nil {
			_, _ = conn.WriteToUDPAddrPort(buf[:size], from)
		}
	}
}
