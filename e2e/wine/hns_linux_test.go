package wine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/antrea-lite/podnet/e2e/wine/fakehns"
)

// tryAgain is the code of CNI for what may be repeated.
const tryAgain = 11

// refused demands a CNI error with one of these codes that says these words.
func refused(t *testing.T, err error, code uint, words ...string) {
	t.Helper()
	var e *types.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error %v, want CNI code %d", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(e.Msg+" "+e.Details, w) {
			t.Errorf("%q is not said: %v", w, e)
		}
	}
}

// TestDeleteHangs: a delete that does not return holds up nobody else, and the
// next DEL waits for the same one.
func TestDeleteHangs(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{})
		pods := n.plug("hangs", "other")
		hangs, other := pods[0], pods[1]
		n.allWired(pods...)
		release, cancel := context.WithCancel(t.Context())
		defer cancel()
		n.hns.Intercept(fakehns.Hang(release, "HcnDeleteEndpoint"))
		c := hangs.call("DEL")
		c.Stdin = n.netConf(map[string]any{"timeoutSeconds": 3})
		for range 2 {
			_, err := n.plugin.Run(t.Context(), c)
			refused(t, err, tryAgain)
		}
		if calls := n.hns.Calls("HcnDeleteEndpoint"); calls != 1 {
			t.Errorf("%d deletes were begun", calls)
		}
		if err := other.wired(); err != nil {
			t.Error(err)
		}
		third := n.plug("third")
		n.allWired(third...)
		cancel()
		n.eventually("DEL succeeds", func() error { return hangs.del(t.Context()) })
		if err := n.hns.Delete(hangs.namespace); err != nil {
			t.Error(err)
		}
		n.hns.Intercept(nil)
		n.unplug(other, third[0])
		n.bareAgain()
	})
}

// TestAttachFails: the ADD fails with HNS's reason and leaves nothing.
func TestAttachFails(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{})
		p, err := n.newPod("a")
		if err != nil {
			t.Fatal(err)
		}
		n.hns.Intercept(fakehns.Refuse("HcnModifyNamespace", fakehns.AttachFailed, "The endpoint could not be attached. "))
		if err := p.add(t.Context()); err == nil || !strings.Contains(strings.ToLower(err.Error()), "0x803b002e") {
			t.Errorf("ADD without attach: %v", err)
		}
		n.bareAgain()
		n.hns.Intercept(nil)
		if err := p.add(t.Context()); err != nil {
			t.Fatalf("ADD again: %v", err)
		}
		if err := p.startContainer(); err != nil {
			t.Fatal(err)
		}
		n.allWired(p)
		n.unplug(p)
		n.bareAgain()
	})
}

// TestServiceForgetsAll: HNS starts anew without its store. Its Pods are lost
// and told of; new ones get network; the old ones' DEL succeeds.
func TestServiceForgetsAll(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{conf: map[string]any{"syncPeriod": "2s"}})
		old := n.plug("a", "b")
		n.allWired(old...)
		if err := n.hns.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := n.newPod("between")
		if err != nil {
			t.Fatal(err)
		}
		refused(t, p.add(t.Context()), tryAgain, "Host Network Service does not run")
		n.hns.Restart()
		if _, err := n.hns.Start(n.hnsAddr); err != nil {
			t.Fatal(err)
		}
		n.eventually("STATUS says that the network is gone", func() error {
			if err := n.status(); err == nil || !strings.Contains(err.Error(), network) {
				return fmt.Errorf("STATUS: %v", err)
			}
			return nil
		})
		n.makeNetwork()
		n.eventually("the agent is ready", n.status)
		if err := old[0].check(t.Context()); err == nil || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("CHECK of a Pod whose endpoint is gone: %v", err)
		}
		for _, p := range old {
			n.eventually("the owner of "+p.name+" hears that its endpoint vanished", func() error { return p.told(notReady, "endpoint", "delete the Pod") })
		}
		fresh := n.plug("c")
		n.allWired(fresh...)
		for _, p := range old {
			if err := p.del(t.Context()); err != nil {
				t.Errorf("DEL of %s: %v", p.name, err)
			}
		}
		n.unplug(fresh...)
		n.bareAgain()
	})
}

// TestNetworkMissingAtStart: until somebody makes the HNS network, ADD is told to
// come again.
func TestNetworkMissingAtStart(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{noNetwork: true, noAgent: true})
		n.launchAgent()
		n.eventually("STATUS names the missing network", func() error {
			if err := n.status(); err == nil || !strings.Contains(err.Error(), "prepare-node") {
				return fmt.Errorf("STATUS: %v", err)
			}
			return nil
		})
		p, err := n.newPod("a")
		if err != nil {
			t.Fatal(err)
		}
		refused(t, p.add(t.Context()), tryAgain)
		if e := n.hns.Endpoints(); len(e) != 0 {
			t.Errorf("endpoints without a network: %v", e)
		}
		n.makeNetwork()
		n.eventually("the agent is ready", n.status)
		n.bare = n.left()
		if err := p.add(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.startContainer(); err != nil {
			t.Fatal(err)
		}
		n.allWired(p)
		n.unplug(p)
		n.bareAgain()
	})
}

// TestNameOrAddressTaken: what a stranger has is named and left alone, what an
// earlier attempt of ours left behind is taken over.
func TestNameOrAddressTaken(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{})
		net := n.hns.Networks()[0].ID()
		p, err := n.newPod("a")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.add(t.Context()); err != nil { // tells name and address that it is going to want
			t.Fatal(err)
		}
		if err := p.del(t.Context()); err != nil {
			t.Fatal(err)
		}

		other, err := n.hns.CreateNetwork(`{"Name":"strangers"}`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := n.hns.CreateEndpoint(other, fmt.Sprintf(`{"Name":%q,"MacAddress":"02-00-00-00-00-09"}`, p.host)); err != nil {
			t.Fatal(err)
		}
		if err := p.add(t.Context()); err == nil || !strings.Contains(err.Error(), p.host) || !strings.Contains(err.Error(), other) {
			t.Errorf("the name is a stranger's: %v", err)
		}
		if err := n.hns.Delete(other); err != nil {
			t.Fatal(err)
		}

		// The addresses go round: the next one is a stranger's.
		next := p.addr.Addr().Next().Next()
		if _, err := n.hns.CreateEndpoint(net, fmt.Sprintf(`{"Name":"strange","IpConfigurations":[{"IpAddress":%q,"PrefixLength":24}]}`, next)); err != nil {
			t.Fatal(err)
		}
		c := p.call("ADD")
		c.Stdin = n.netConf(map[string]any{"runtimeConfig": map[string]any{"ips": []string{next.String()}}})
		if _, err := n.plugin.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "strange") || !strings.Contains(err.Error(), next.String()) {
			t.Errorf("the address is a stranger's: %v", err)
		}
		if n.hns.Endpoint("strange") == nil {
			t.Error("the stranger's endpoint was removed")
		} else if err := n.hns.Delete(n.hns.Endpoint("strange").ID()); err != nil {
			t.Fatal(err)
		}

		// An earlier attempt of ours, by name, on our network.
		if _, err := n.hns.CreateEndpoint(net, fmt.Sprintf(`{"Name":%q}`, p.host)); err != nil {
			t.Fatal(err)
		}
		if err := p.add(t.Context()); err != nil {
			t.Fatalf("a left-over is in the way: %v", err)
		}
		if e := n.hns.Endpoints(); len(e) != 1 {
			t.Errorf("endpoints %v", e)
		}
		if err := p.startContainer(); err != nil {
			t.Fatal(err)
		}
		n.allWired(p)
		n.unplug(p)
		n.bareAgain()
	})
}

// TestDeleteAsTheVNICAppears, with a service that takes its time for each call:
// the agent's late step and the DEL of one Pod meet.
func TestDeleteAsTheVNICAppears(t *testing.T) {
	scenario(t, func(t *testing.T) {
		n := start(t, nodeOptions{})
		names := make([]string, 20)
		for i := range names {
			names[i] = fmt.Sprintf("p%02d", i)
		}
		n.hns.Intercept(func(ctx context.Context, c fakehns.Call) *fakehns.Reply {
			return fakehns.Delay(c.Op, 100*time.Millisecond)(ctx, c)
		})
		for range 2 {
			pods := n.plugWithout(names...)
			n.all(len(pods), func(ctx context.Context, i int) error {
				// DEL may have removed the endpoint already: then there is no vNIC.
				started := make(chan error, 1)
				go func() { started <- pods[i].startContainer() }()
				err := pods[i].remove(ctx)
				<-started
				return err
			})
			n.bareAgain()
		}
		n.hns.Intercept(nil)
		n.noHandleIsOpen()
	})
}
