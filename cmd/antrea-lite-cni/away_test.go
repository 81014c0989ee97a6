package main

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/cmd/internal/sockettest"
)

const prevOfC1 = `"prevResult": {"cniVersion": "1.0.0", "interfaces": [{"name": "eth0", "sandbox": "` + sandbox + `"}]}`

func verbs() map[string]string {
	return map[string]string{"ADD": "", "DEL": "", "CHECK": prevOfC1, "GC": `"cni.dev/valid-attachments": []`, "STATUS": ""}
}

// absence is one way in which the agent is not there.
type absence struct {
	name  string
	serve func(t *testing.T, socket string)
	code  uint
	words []string
}

// TestAgentAway: no socket, a socket nobody listens on, an agent that dies or answers nonsense.
func TestAgentAway(t *testing.T) {
	for _, c := range append(away(), []absence{
		{"no socket", func(*testing.T, string) {}, 11, []string{"agent is not running", noSocket}},
		{"dies", func(t *testing.T, socket string) {
			serve(t, socket, func(conn net.Conn) { conn.Read(make([]byte, 10)) })
		}, 11, []string{"ended before it answered"}},
		{"half an answer", func(t *testing.T, socket string) {
			serve(t, socket, func(conn net.Conn) {
				conn.Read(make([]byte, 4096))
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{")
			})
		}, 11, []string{"ended before it answered"}},
	}...) {
		for verb, more := range verbs() {
			t.Run(c.name+" "+verb, func(t *testing.T) {
				t.Parallel()
				a := &agent{socket: sockettest.Path(t)}
				c.serve(t, a.socket)
				code := c.code
				if verb == "STATUS" {
					code = 50
				}
				_, err := call{verb: verb, conf: a.conf("1.1.0", more)}.run(t)
				wantError(t, err, code, append(c.words, a.socket)...)
			})
		}
	}
}

// TestAgentTalksNonsense: whatever sits on the socket, the plugin ends with a CNI error.
func TestAgentTalksNonsense(t *testing.T) {
	for name, answer := range map[string]string{
		"not HTTP":  "SSH-2.0-OpenSSH_9\r\n\r\n",
		"no length": "HTTP/1.1 200 OK\r\n\r\n{}",
		"lengths":   "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}",
		"not JSON":  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n<>",
		"page":      "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\noops",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &agent{socket: sockettest.Path(t)}
			serve(t, a.socket, func(conn net.Conn) {
				conn.Read(make([]byte, 4096))
				io.WriteString(conn, answer)
			})
			_, err := call{verb: "ADD", conf: a.conf("1.0.0", "")}.run(t)
			if err == nil {
				t.Fatal("no error")
			}
		})
	}
}

// TestAgentRefuses: the agent's code, words and remedy reach the runtime unchanged.
func TestAgentRefuses(t *testing.T) {
	a := newAgent(t)
	a.before = func(string, *cniapi.Request, <-chan struct{}) *cniapi.Error {
		return &cniapi.Error{Code: 101, Msg: "all addresses are taken", Details: "remove Pods"}
	}
	_, err := call{verb: "ADD", conf: a.conf("1.0.0", "")}.run(t)
	wantError(t, err, 101, "all addresses are taken", "remove Pods")
}

// TestTimeout: the agent is told to stop when the plugin's time is over.
func TestTimeout(t *testing.T) {
	a := newAgent(t)
	a.before = func(_ string, _ *cniapi.Request, gone <-chan struct{}) *cniapi.Error {
		<-gone
		return nil
	}
	_, err := call{verb: "ADD", conf: a.conf("1.0.0", `"timeoutSeconds": 1`)}.run(t)
	wantError(t, err, 11, "did not answer in time")
	if err := a.end(t); err == nil {
		t.Error("an ADD that failed was confirmed")
	}
}

// TestKilled: however the plugin ends before it has printed, the agent learns that the ADD was for nothing.
func TestKilled(t *testing.T) {
	for _, sig := range append(stops(), os.Kill) {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			a := newAgent(t)
			begun := make(chan struct{})
			a.before = func(_ string, _ *cniapi.Request, gone <-chan struct{}) *cniapi.Error {
				close(begun)
				<-gone
				return nil
			}
			cmd := call{verb: "ADD", conf: a.conf("1.0.0", "")}.command(t)
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			<-begun
			start := time.Now()
			cmd.Process.Signal(sig)
			stdout, _ := io.ReadAll(out)
			err = cniError(stdout, cmd.Wait())
			if err == nil {
				t.Fatal("the plugin ended well")
			}
			if sig != os.Kill {
				wantError(t, err, cniapi.CodeInterrupt, "told to stop")
			}
			if err := a.end(t); err == nil {
				t.Error("the ADD was confirmed")
			}
			t.Logf("ended %v after the signal", time.Since(start))
		})
	}
}

// TestResultCannotBePrinted: a runtime that closed our stdout did not get the result.
func TestResultCannotBePrinted(t *testing.T) {
	a := newAgent(t)
	a.answer = sample()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	cmd := call{verb: "ADD", conf: a.conf("1.0.0", "")}.command(t)
	cmd.Stdout = w
	err = cmd.Run()
	w.Close()
	if err == nil {
		t.Error("the plugin ended well")
	}
	if err := a.end(t); err == nil {
		t.Error("a result that nobody read was confirmed")
	}
}

// serve answers every connection with f and closes it.
func serve(t *testing.T, socket string, f func(net.Conn)) {
	t.Helper()
	l := sockettest.Listen(t, socket)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
}
