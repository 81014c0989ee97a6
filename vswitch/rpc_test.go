package vswitch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

const probe = 5 * time.Second

// piped starts an rpc whose peer is the test.
func piped(t *testing.T, notify func(string, json.RawMessage) error) (r *rpc, peer net.Conn, cause chan error) {
	ours, peer := net.Pipe()
	r = newRPC(ours, probe)
	r.notify = notify
	if notify == nil {
		r.notify = func(string, json.RawMessage) error { return nil }
	}
	r.gone = func() {}
	cause = make(chan error, 1)
	go func() { cause <- r.run(t.Context()) }()
	t.Cleanup(func() { peer.Close() })
	return r, peer, cause
}

// DB-5: two probe periods, to the tick, whatever the connection is stuck in.
func TestSilenceEndsAConnection(t *testing.T) {
	for name, peer := range map[string]func(net.Conn){
		"peer reads and says nothing": func(c net.Conn) { io.Copy(io.Discard, c) },
		"peer does not even read":     func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, conn, cause := piped(t, nil)
				go peer(conn)
				begin := time.Now()
				errs := make(chan error, 100)
				for range cap(errs) { // more than the queue holds
					go func() {
						_, err := r.call(t.Context(), "transact", []any{}, nil)
						errs <- err
					}()
				}
				err := <-cause
				if took := time.Since(begin); took != 2*probe || !strings.Contains(err.Error(), "nothing heard") {
					t.Errorf("ended after %v: %v", took, err)
				}
				for range cap(errs) {
					if err := <-errs; !errors.Is(err, podnet.ErrOutcomeUnknown) && !errors.Is(err, podnet.ErrNotConnected) {
						t.Error(err)
					}
				}
			})
		})
	}
}

// An idle server that answers probes, or is probing us, keeps its connection for ever.
func TestEchoBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, conn, cause := piped(t, nil)
		dec := json.NewDecoder(conn)
		probes := 0
		begin := time.Now()
		for time.Since(begin) < time.Hour {
			var m message
			if err := dec.Decode(&m); err != nil {
				t.Fatal(err)
			}
			if m.Method != "echo" {
				t.Fatalf("unexpected %+v", m)
			}
			probes++
			fmt.Fprintf(conn, `{"id":%s,"result":[],"error":null}`, m.ID)
			fmt.Fprint(conn, `{"method":"echo","id":"theirs","params":["x"]}`)
			if err := dec.Decode(&m); err != nil || string(m.ID) != `"theirs"` || string(m.Result) != `["x"]` {
				t.Fatalf("their echo: %+v, %v", m, err)
			}
		}
		if want := int(time.Hour / probe); probes != want {
			t.Errorf("%d probes in an hour, want %d", probes, want)
		}
		conn.Close()
		if err := <-cause; err == nil {
			t.Error("no cause")
		}
	})
}

func TestCallerLeavesACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, conn, _ := piped(t, nil)
		dec := json.NewDecoder(conn)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := r.call(ctx, "transact", []any{}, nil)
			done <- err
		}()
		var m message
		dec.Decode(&m)
		cancel()
		if err := <-done; !errors.Is(err, podnet.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		fmt.Fprintf(conn, `{"id":%s,"result":[],"error":null}`, m.ID) // late, and harmless
		go func() {
			_, err := r.call(t.Context(), "transact", []any{}, nil)
			done <- err
		}()
		dec.Decode(&m)
		fmt.Fprintf(conn, `{"id":%s,"result":null,"error":{"error":"unknown database","details":"x"}}`, m.ID)
		var re *rpcError
		if err := <-done; !errors.As(err, &re) || err.Error() != "transact: unknown database: x" {
			t.Error(err)
		}
		if len(r.pending) != 0 {
			t.Errorf("%d calls are remembered", len(r.pending))
		}
	})
}

// Nothing that a peer may send panics or stops the reader without a cause.
func TestOddMessages(t *testing.T) {
	for _, odd := range []string{
		`{}`, `{"id":null,"result":[],"error":null}`, `{"id":"x","result":1}`, `{"id":99,"result":[]}`,
		`{"id":-1}`, `{"id":[]}`, `{"method":"echo"}`, `{"method":"locked","params":[]}`, `{"method":"echo","id":null,"params":[]}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r, conn, _ := piped(t, nil)
			go fmt.Fprint(conn, odd)
			synctest.Wait()
			go func() {
				var m message
				json.NewDecoder(conn).Decode(&m)
				fmt.Fprintf(conn, `{"id":%s,"result":[1],"error":null}`, m.ID)
			}()
			if res, err := r.call(t.Context(), "x", nil, nil); err != nil || string(res) != "[1]" {
				t.Errorf("after %s: %s, %v", odd, res, err)
			}
		})
	}
	for _, broken := range []string{`[]`, `5`, `"x"`, `{"method":5}`, `{"id"`, `}`, "\x00"} {
		synctest.Test(t, func(t *testing.T) {
			_, conn, cause := piped(t, nil)
			go func() {
				fmt.Fprint(conn, broken)
				conn.Close()
			}()
			if err := <-cause; err == nil {
				t.Errorf("%s: no cause", broken)
			}
		})
	}
}
