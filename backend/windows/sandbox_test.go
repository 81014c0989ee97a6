package windows_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/backend/windows/hnstest"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// hnsNode is a Windows node whose cables are HNS endpoints: the parts that a
// Windows agent has, but in memory.
type hnsNode struct {
	*winNode
	hns *hnstest.HNS
}

// inHNSNode runs fn on a node in a synctest bubble and looks for what is left.
func inHNSNode(t *testing.T, fn func(t *testing.T, n *hnsNode, network *podnet.Network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := &hnsNode{winNode: newWinNode(), hns: hnstest.New()}
		n.hns.AddNetwork(windows.Network{Name: "podnet", Type: windows.Transparent, Subnets: []windows.Subnet{{Prefix: netip.MustParsePrefix("10.10.0.0/16")}}})
		network, stop := n.start(t)
		defer stop()
		fn(t, n, network)
		if broken := n.Broken(); len(broken) > 0 {
			t.Error(broken)
		}
	})
}

// start runs a Network on the node; starting again is a restart of the agent.
func (n *hnsNode) start(t *testing.T) (network *podnet.Network, stop func()) {
	t.Helper()
	cfg := n.World.Config()
	cfg.Linker = newLinker(t, n.hns, func(c *windows.Config) { c.Network = windows.Network{} })
	cfg.Readiness = n.readiness(t)
	return podnettest.Start(t, cfg)
}

func (n *hnsNode) request(id string) podnet.Request {
	req := podnettest.NewRequest(id)
	req.NetNS = strings.ToUpper(n.hns.AddNamespace().String())
	return req
}

func (n *hnsNode) nothingLeft(t *testing.T) {
	t.Helper()
	if left := append(n.Leftovers(), names(n.hns)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// CN-23, HN-5: a runtime that sends an ADD for each container of a Pod, repeats
// them for status, and sends the DELs in any order.
func TestContainersOfASandboxShareItsInterface(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		inHNSNode(t, func(t *testing.T, n *hnsNode, network *podnet.Network) {
			sandboxes := windows.NewSandboxes(network)
			infra := n.request("infra")
			// A container that comes before its sandbox makes nothing.
			early := infra
			early.ContainerID, early.NetNS = "early", "container:infra"
			if _, err := sandboxes.Add(t.Context(), early); !errors.Is(err, podnet.ErrTryAgain) {
				t.Errorf("%v, want %v", err, podnet.ErrTryAgain)
			}
			want, err := sandboxes.Add(t.Context(), infra)
			if err != nil {
				t.Fatal(err)
			}
			keys := []ifstore.Key{infra.Key}
			netNS := map[ifstore.Key]string{infra.Key: infra.NetNS}
			for i := range 3 {
				req := infra
				req.ContainerID, req.NetNS = fmt.Sprint("container", i), "container:infra"
				for range 2 {
					got, err := sandboxes.Add(t.Context(), req)
					if err != nil || got.Key != want.Key || got.MAC != want.MAC || !slices.Equal(got.IPs(), want.IPs()) {
						t.Errorf("container %d got %+v, %v", i, got, err)
					}
				}
				keys, netNS[req.Key] = append(keys, req.Key), req.NetNS
			}
			// The sandbox's ADD again, its namespace in another spelling.
			infra.NetNS = strings.ToLower(infra.NetNS)
			if got, err := sandboxes.Add(t.Context(), infra); err != nil || !slices.Equal(got.IPs(), want.IPs()) {
				t.Errorf("%+v, %v", got, err)
			}
			// One that is not of the Pod fails and takes nothing with it.
			stranger := infra
			stranger.ContainerID, stranger.NetNS, stranger.Pod.Name = "stranger", "container:infra", "another"
			if _, err := sandboxes.Add(t.Context(), stranger); !errors.Is(err, podnet.ErrBadRequest) {
				t.Errorf("%v, want %v", err, podnet.ErrBadRequest)
			}
			if err := sandboxes.Delete(t.Context(), stranger.Key, stranger.NetNS); err != nil {
				t.Error(err)
			}
			if got := n.hns.Endpoints(); len(got) != 1 || len(n.Addresses.Leases()) != 1 {
				t.Errorf("endpoints %v, leases %v; want one of each", got, n.Addresses.Leases())
			}

			rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			gone := false
			for _, key := range keys {
				// DELs come with the namespace, or without.
				ns := netNS[key]
				if rng.IntN(2) == 0 {
					ns = ""
				}
				if err := sandboxes.Delete(t.Context(), key, ns); err != nil {
					t.Errorf("DEL of %s: %v", key, err)
				}
				gone = gone || key == infra.Key
				if left := len(n.hns.Endpoints()); (left == 0) != gone {
					t.Errorf("after the DEL of %s %d endpoints are left", key, left)
				}
			}
			n.nothingLeft(t)
		})
	}
}

func TestCheckOfAContainerIsThatOfItsSandbox(t *testing.T) {
	inHNSNode(t, func(t *testing.T, n *hnsNode, network *podnet.Network) {
		sandboxes := windows.NewSandboxes(network)
		req := n.request("infra")
		iface, err := sandboxes.Add(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		n.vnics.set(iface.Name, true)
		readyWithin(t, network, iface, time.Minute)
		check := func(id, netNS string) error {
			return sandboxes.CheckAgainst(t.Context(), ifstore.Key{ContainerID: id, IfName: "eth0"}, podnet.Want{NetNS: netNS, MAC: iface.MAC})
		}
		if err := check("infra", req.NetNS); err != nil {
			t.Error(err)
		}
		if err := check("other", "container:infra"); err != nil {
			t.Error(err)
		}
		if err := check("other", "container:unknown"); !errors.Is(err, podnet.ErrNotFound) {
			t.Error(err)
		}
		n.hns.RemoveEndpoints(iface.Name)
		for _, err := range []error{check("infra", req.NetNS), check("other", "container:infra")} {
			if !errors.Is(err, windows.ErrVanished) {
				t.Errorf("%v, want %v", err, windows.ErrVanished)
			}
		}
	})
}

// CN-25: the vNIC comes when it comes. ADD returns when endpoint and port are
// there; the rest follows.
func TestPodIsReadyAfterItsContainerStarted(t *testing.T) {
	for _, late := range []time.Duration{100 * time.Millisecond, 20 * time.Second, 90 * time.Second} {
		inHNSNode(t, func(t *testing.T, n *hnsNode, network *podnet.Network) {
			start := time.Now()
			iface, err := network.Add(t.Context(), n.request("c"))
			if err != nil || iface.State != ifstore.StateWaiting || time.Since(start) > 0 {
				t.Fatalf("%+v, %v after %v", iface, err, time.Since(start))
			}
			if e := n.hns.Endpoints(); len(e) != 1 || e[0].Name != iface.Name || !slices.Equal(n.Bridge.Names(), []string{iface.Name}) {
				t.Errorf("endpoints %v, ports %v", e, n.Bridge.Names())
			}
			after(late)
			n.vnics.set(iface.Name, true)
			readyWithin(t, network, iface, 10*time.Second)
			if err := network.Check(t.Context(), iface.Key); err != nil {
				t.Error(err)
			}
			del(t, network, iface)
			n.nothingLeft(t)
		})
	}
}

// HN-26: HNS forgets everything while Pods run: no Pod is swept for it. A Pod
// whose namespace alone is gone was deleted, and is.
func TestOnlyDeadSandboxesAreSwept(t *testing.T) {
	inHNSNode(t, func(t *testing.T, n *hnsNode, network *podnet.Network) {
		var ifaces []ifstore.Interface
		var requests []podnet.Request
		for i := range 10 {
			req := n.request(fmt.Sprint("c", i))
			iface, err := network.Add(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			n.vnics.set(iface.Name, true)
			ifaces, requests = append(ifaces, iface), append(requests, req)
		}
		readyWithin(t, network, ifaces[9], time.Minute)
		n.hns.RemoveNamespace(guid(t, requests[0].NetNS))
		after(10 * time.Minute)
		if got := len(network.Interfaces()); got != 9 {
			t.Errorf("%d interfaces, want 9: the sandbox of one is gone", got)
		}
		n.hns.Forget(true)
		after(time.Hour)
		if got := len(network.Interfaces()); got != 9 {
			t.Errorf("%d interfaces, want 9: HNS forgot them, their Pods run", got)
		}
		for _, iface := range ifaces {
			del(t, network, iface)
		}
		n.nothingLeft(t)
	})
}

// A DEL while HNS hangs answers "try again", the removal goes on when HNS does,
// and the address is not given away before.
func TestDeleteGoesOnWhenHNSDoes(t *testing.T) {
	inHNSNode(t, func(t *testing.T, n *hnsNode, network *podnet.Network) {
		iface, err := network.Add(t.Context(), n.request("c"))
		if err != nil {
			t.Fatal(err)
		}
		release := n.hns.HangUp(windows.OpDeleteEndpoint)
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := network.Delete(ctx, iface.Key); !errors.Is(err, podnet.ErrTryAgain) {
				t.Errorf("%v, want %v", err, podnet.ErrTryAgain)
			}
			cancel()
		}
		if got := count(n.hns, windows.OpDeleteEndpoint); got != 1 {
			t.Errorf("%d deletes", got)
		}
		if leases := n.Addresses.Leases(); len(leases) != 1 {
			t.Errorf("leases %v while the endpoint may still have the address", leases)
		}
		release()
		after(time.Minute)
		n.nothingLeft(t)
	})
}

// The agent restarts while Pods wait, run, and after one was deleted.
func TestRestartOnHNS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &hnsNode{winNode: newWinNode(), hns: hnstest.New()}
		n.hns.AddNetwork(windows.Network{Name: "podnet", Type: windows.Transparent})
		network, stop := n.start(t)
		var ifaces []ifstore.Interface
		var requests []podnet.Request
		for _, id := range []string{"waiting", "running", "deleted"} {
			req := n.request(id)
			iface, err := network.Add(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			ifaces, requests = append(ifaces, iface), append(requests, req)
		}
		n.vnics.set(ifaces[1].Name, true)
		readyWithin(t, network, ifaces[1], time.Minute)
		stop()
		n.hns.RemoveNamespace(guid(t, requests[2].NetNS)) // its DEL is lost

		network, stop = n.start(t)
		defer stop()
		readyWithin(t, network, ifaces[1], time.Minute)
		n.vnics.set(ifaces[0].Name, true)
		readyWithin(t, network, ifaces[0], time.Minute)
		after(10 * time.Minute)
		if got := names(n.hns); len(got) != 2 || slices.Contains(got, ifaces[2].Name) {
			t.Errorf("endpoints %q; want those of the two that live", got)
		}
		for _, iface := range ifaces {
			if iface.Key != ifaces[2].Key {
				if err := network.Check(t.Context(), iface.Key); err != nil {
					t.Error(err)
				}
			}
			del(t, network, iface)
		}
		n.nothingLeft(t)
	})
}
