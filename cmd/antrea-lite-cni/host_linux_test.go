package main

import (
	"net"
	"os"
	"syscall"
	"testing"
)

// sandbox is a network namespace that is not the host's, as far as the plugin can see.
const sandbox = "/proc/self/ns/ipc"

const noSocket = "no socket"

// stops are the signals by which a plugin is asked to end.
func stops() []os.Signal { return []os.Signal{syscall.SIGTERM, os.Interrupt} }

// away is how an agent can be away on Linux only: its socket stays behind.
func away() []absence {
	return []absence{{"stale socket", func(t *testing.T, socket string) {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}, 11, []string{"agent is not running", "nobody listens"}}}
}

func badNetNS() []badInput {
	return []badInput{
		{"netns gone", "ADD", "", map[string]string{"CNI_NETNS": "/run/netns/gone"}, 8, []string{"/run/netns/gone"}},
		{"netns is none", "ADD", "", map[string]string{"CNI_NETNS": "/etc"}, 8, []string{"/etc"}},
		{"host netns", "ADD", "", map[string]string{"CNI_NETNS": "/proc/self/ns/net"}, 8, []string{"/proc/self/ns/net", "host"}},
	}
}

// TestSignalBeforeStdin: a plugin that still waits for its configuration can be stopped.
func TestSignalBeforeStdin(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	cmd := call{verb: "ADD", stdin: r}.command(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err == nil {
		t.Error("the plugin ended well")
	}
}
