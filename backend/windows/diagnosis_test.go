package windows_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// HN-25: what HNS says about the endpoint is in the Pod's event.
func TestStateOfTheEndpointIsTold(t *testing.T) {
	const missing = "NetworkNotReady: interface c1/eth0 (port PORT) has no network after 30s, waiting for: host interface vEthernet (PORT) has not appeared yet; "
	namespace, err := windows.ParseGUID("11111111-2222-3333-4444-555555555555")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		endpoints func(ctx context.Context, name string) ([]windows.Endpoint, error)
		want      string
	}{
		"stuck in state 3": {
			func(_ context.Context, name string) ([]windows.Endpoint, error) {
				return []windows.Endpoint{{Name: name, State: windows.StateAttachedSharing, Namespace: namespace}}, nil
			}, missing + "its HNS endpoint is in state 3 (attached, shared)",
		},
		"created, not attached": {
			func(_ context.Context, name string) ([]windows.Endpoint, error) {
				return []windows.Endpoint{{Name: "other"}, {Name: name, State: windows.StateCreated}}, nil
			}, missing + "its HNS endpoint is in state 1 (created) and attached to no namespace",
		},
		"gone": {
			func(context.Context, string) ([]windows.Endpoint, error) {
				return []windows.Endpoint{{Name: "other"}}, nil
			}, missing + "HNS has no endpoint of that name any more: delete the Pod, so that it gets a new one",
		},
		"HNS fails": {
			func(context.Context, string) ([]windows.Endpoint, error) {
				return nil, errors.New("the service does not run")
			},
			missing + "HNS does not tell the state of its endpoint: the service does not run",
		},
		"HNS hangs": {
			func(ctx context.Context, _ string) ([]windows.Endpoint, error) {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}, missing + "HNS does not tell the state of its endpoint: no answer in 10s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var port string
			asked := 0
			setUp := func(n *winNode) {
				n.cfg.Endpoints = func(ctx context.Context) ([]windows.Endpoint, error) {
					mu.Lock()
					asked++
					name := port
					mu.Unlock()
					return test.endpoints(ctx, name)
				}
			}
			inWinNode(t, setUp, func(t *testing.T, n *winNode, network *podnet.Network) {
				iface := add(t, network, "c1")
				mu.Lock()
				port = iface.Name
				mu.Unlock()
				after(31 * time.Second)
				wantTold(t, n, iface, test.want)
				other := add(t, network, "c2") // is held up by nothing of this
				n.vnics.set(other.Name, true)
				if took := readyWithin(t, network, other, 2*time.Second); took > 700*time.Millisecond {
					t.Errorf("another Pod took %v", took)
				}
				after(time.Hour)
				mu.Lock()
				if asked > 365 {
					t.Errorf("HNS was asked %d times in an hour", asked)
				}
				mu.Unlock()
				if got := told(n, iface); len(got) != 1 {
					t.Errorf("told %q", got)
				}
				n.vnics.set(iface.Name, true)
				readyWithin(t, network, iface, 2*time.Second)
				mu.Lock()
				before := asked
				mu.Unlock()
				after(time.Hour)
				mu.Lock()
				defer mu.Unlock()
				if asked != before {
					t.Errorf("HNS was asked %d times while nobody waits", asked-before)
				}
				if s, _ := state(network, iface); s != ifstore.StateReady {
					t.Errorf("%v", s)
				}
			})
		})
	}
}
