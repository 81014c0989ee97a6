package wine

import (
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// TestLifeOverTCP and TestLifeOverPipes follow two Pods from ADD to DEL.
func TestLifeOverTCP(t *testing.T) { scenario(t, func(t *testing.T) { life(t, nodeOptions{}) }) }

func TestLifeOverPipes(t *testing.T) {
	scenario(t, func(t *testing.T) { life(t, nodeOptions{pipes: true}) })
}

func life(t *testing.T, o nodeOptions) {
	n := start(t, o)
	pods := n.plugWithout("a", "b")
	a, b := pods[0], pods[1]
	// ADD has answered, and nothing can be wired yet.
	a.dark(t)
	b.dark(t)
	for _, p := range pods {
		if err := p.startContainer(); err != nil {
			t.Fatal(err)
		}
	}
	n.allWired(a, b)
	for _, p := range pods {
		if err := p.check(t.Context()); err != nil {
			t.Errorf("CHECK of %s: %v", p.name, err)
		}
	}
	from, to := a.enter(t), b.enter(t)
	n.eventually("a reaches b", func() error {
		_, err := lab.Ping(from.NS, from.Addr, to.Addr, 56, time.Second)
		return err
	})
	for _, p := range pods {
		if err := p.add(t.Context()); err != nil { // kubelet asks again
			t.Errorf("ADD of %s, again: %v", p.name, err)
		}
	}
	spare := *a
	spare.mac = b.mac
	if err := spare.check(t.Context()); err == nil || !strings.Contains(err.Error(), b.mac) {
		t.Errorf("CHECK with another MAC address: %v", err)
	}
	n.unplug(a)
	if err := a.del(t.Context()); err != nil {
		t.Errorf("DEL again: %v", err)
	}
	if err := b.wired(); err != nil {
		t.Errorf("after a's DEL: %v", err)
	}
	n.unplug(b)
	n.bareAgain()
	n.noHandleIsOpen()
}
