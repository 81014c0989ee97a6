// testpod is what the harness' Pods run: servers whose answers prove who was
// reached and that nothing was changed on the way, and the clients for them.
//
//	testpod serve                        HTTP on 8080, TCP digest on 8081, UDP echo on 8082
//	testpod get URL                      one HTTP GET; the answer on stdout
//	testpod send ADDRESS BYTES           random bytes over TCP; the server's digest must be ours
//	testpod udp ADDRESS SIZE             one datagram that must come back unchanged
//	testpod lookup NAME                  the addresses of a name, by the Pod's resolver
//
// ADDRESS is HOST:PORT. Clients give up after -timeout and exit 1.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	timeout := flag.Duration("timeout", 3*time.Second, "how long a client may take")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	if err := run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testpod:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch command := strings.Join(args[:min(1, len(args))], ""); {
	case command == "serve" && len(args) == 1:
		return serve()
	case command == "get" && len(args) == 2:
		return get(ctx, args[1], os.Stdout)
	case command == "send" && len(args) == 3:
		size, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return err
		}
		return send(ctx, args[1], size)
	case command == "udp" && len(args) == 3:
		size, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		return askUDP(ctx, args[1], size)
	case command == "lookup" && len(args) == 2:
		return lookup(ctx, args[1], os.Stdout)
	}
	return fmt.Errorf("arguments %q: want serve | get URL | send ADDRESS BYTES | udp ADDRESS SIZE | lookup NAME", args)
}
