// Command fakehnsd runs the fake host network service by itself, for hcsshim's
// own tests and for trying things by hand:
//
//	go run ./e2e/wine/fakehnsd -listen 127.0.0.1:19999 &
//	FAKE_HNS_ADDR=127.0.0.1:19999 e2e/wine/wine-exec program.exe
//
// With arguments it runs them as a command that has FAKE_HNS_ADDR in its
// environment, and ends with it and with its exit code.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakehnsd:", err)
	}
	os.Exit(code)
}

func run() (int, error) {
	listen := flag.String("listen", "127.0.0.1:0", "address to serve at; port 0 takes a free one")
	flag.Parse()
	s := fakehns.New()
	addr, err := s.Start(*listen)
	if err != nil {
		return 1, err
	}
	defer s.Close()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt)
	if flag.NArg() == 0 {
		fmt.Println(addr)
		<-stop
		return 0, nil
	}
	cmd := exec.Command(flag.Arg(0), flag.Args()[1:]...)
	cmd.Env = append(os.Environ(), "FAKE_HNS_ADDR="+addr)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run() // an interrupt reaches it, too
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
