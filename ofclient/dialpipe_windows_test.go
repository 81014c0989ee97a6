package ofclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/oftest"
)

// pipeTo opens a named pipe of Open vSwitch's kind whose connections lead to sw.
func pipeTo(t *testing.T, sw *oftest.Switch, name string) (stop func()) {
	t.Helper()
	l, err := winio.ListenPipe(name, &winio.PipeConfig{MessageMode: true, InputBufferSize: 65000, OutputBufferSize: 65000})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := sw.Dial(t.Context())
			if err != nil {
				client.Close()
				continue
			}
			relay := func(to io.WriteCloser, from io.Reader) {
				_, _ = io.Copy(to, from)
				client.Close()
				server.Close()
			}
			wg.Go(func() { relay(server, client) })
			wg.Go(func() { relay(client, server) })
		}
	})
	return sync.OnceFunc(func() {
		l.Close()
		sw.DropSessions()
		wg.Wait()
	})
}

// The path of the socket and the name of the pipe mean the same; a client that
// was there before the pipe finds it, and finds it again.
func TestClientOverNamedPipe(t *testing.T) {
	sw := newSwitch(t)
	sw.AddPort(ofp.PortDesc{Number: 7, Name: "pod7"})
	id := fmt.Sprintf("podnet-%d", os.Getpid())
	c := run(t, ofclient.Config{Dial: ofclient.DialPipe(`C:\` + id + `\br-int.mgmt`), BackoffMax: 50 * time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for round := range 2 {
		stop := pipeTo(t, sw, `\\.\pipe\C:`+id+`br-int.mgmt`)
		t.Cleanup(stop)
		group := ofclient.Group{Name: "pod", Mods: make([]ofp.FlowMod, 1500)} // more than the pipe holds
		for n := range group.Mods {
			group.Mods[n] = flow(10_000*round + n)
		}
		for err := errors.New("not tried"); err != nil; { // the client may still believe in the session before
			if err = c.Apply(ctx, []ofclient.Group{group})[0]; ctx.Err() != nil {
				t.Fatal(err)
			}
		}
		if got := len(sw.Flows()); got != 1500*(round+1) {
			t.Errorf("round %d: %d flows in the switch", round, got)
		}
		stop()
	}
}

func TestMissingPipeIsNamed(t *testing.T) {
	_, err := ofclient.DialPipe(`C:\podnet\none.mgmt`)(t.Context())
	if err == nil || !strings.Contains(err.Error(), `OpenFlow named pipe \\.\pipe\C:podnetnone.mgmt`) {
		t.Errorf("%v", err)
	}
}
