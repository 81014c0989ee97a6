package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// TestNodeReboot: a Pod comes back after a power cut, and nothing of what it was in the
// earlier boot is left: its dead sandbox is unplugged by a DEL without a namespace.
func TestNodeReboot(t *testing.T) {
	w := newWorld(t)
	n1 := w.Nodes()[0]
	before := w.states()[0]
	server, client := w.pair()
	one := w.states()[0]
	svc := w.service("web", "a", nil)
	to := netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIP), 80)
	answers := func() error {
		host, _, err := curl(w.ctx, client.ns, to)
		return orWrong(err, host, "a")
	}
	w.until("the Service answers", answers)
	began := time.Now()
	w.must(w.Reboot(w.ctx, n1))
	w.must(connection.Rebooted(w.ctx, w.Cluster))
	// Until the kubelet has spoken, the API server shows the life before.
	w.until("the Pod has been started again", func() error {
		p, err := w.Client().CoreV1().Pods(w.namespace).Get(w.ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if restarts := restarts(p); restarts == 0 {
			return errors.New("its container has not been restarted")
		}
		return isReady(p)
	})
	w.until("the Service answers again", answers)
	t.Logf("the Service answers %s after the power cut", time.Since(began).Round(100*time.Millisecond))
	again := w.ready("a", n1)
	if again.UID != server.UID {
		t.Errorf("the Pod is another one: UID %s, before %s", again.UID, server.UID)
	}
	if _, err := lab.Ping(again.ns, netip.Addr{}, client.addrs()[0], 56, 3*time.Second); err != nil {
		t.Errorf("ping from the rebooted node: %v", err)
	}
	// The kubelet removes dead sandboxes when it starts, and once a minute.
	w.must(n1.Stop("kubelet"))
	w.must(n1.Start("kubelet"))
	w.until("the node has one Pod's things", func() error {
		now, err := w.State(w.ctx, n1)
		if err != nil {
			return err
		}
		for kind := range one {
			// The names and addresses are others.
			if len(now[kind]) != len(one[kind]) {
				err = errors.Join(err, fmt.Errorf("%d of the kind %s, not %d:\n%s", len(now[kind]), kind, len(one[kind]), now.Diff(before)))
			}
		}
		return err
	})
	t.Logf("nothing of the earlier boot is left %s after the power cut", time.Since(began).Round(100*time.Millisecond))
}

func restarts(p *corev1.Pod) (n int32) {
	for _, s := range p.Status.ContainerStatuses {
		n += s.RestartCount
	}
	return n
}

// TestAPIServerAway: for a minute no packet is lost, and a sandbox that dies is
// replaced, which is a DEL and an ADD. What happened is caught up with later.
func TestAPIServerAway(t *testing.T) {
	w := newWorld(t)
	n1 := w.Nodes()[0]
	a, b := w.pair()
	// The kubelet cannot renew a token alone.
	dies := testPod(w.namespace, "dies", n1.Name)
	dies.Spec.AutomountServiceAccountToken = ptr.To(false)
	w.create(dies)
	victim := w.ready("dies", n1)
	svc := w.service("dies", "dies", nil)
	w.must(w.StopAPI())
	t.Cleanup(func() { w.must(w.StartAPI(context.Background())) })
	minute, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	stop := w.load(append(ways("across nodes", a, b), ways("back", b, a)...)...)
	addrs := w.replaceSandbox(victim)
	for _, to := range addrs {
		host, _, err := curl(w.ctx, b.ns, netip.AddrPortFrom(to, httpPort))
		w.must(orWrong(err, host, "dies"))
	}
	<-minute.Done()
	w.lossless(stop)
	w.must(w.StartAPI(w.ctx))
	back := time.Now()
	// It is not Kubernetes' own pauses that are tested. The agents are left alone.
	w.must(w.RestartClients())
	w.until("the API server knows the new sandbox", func() error {
		p, err := w.Client().CoreV1().Pods(w.namespace).Get(w.ctx, "dies", metav1.GetOptions{})
		if err == nil {
			victim.Pod, err = p, isReady(p)
		}
		if now := victim.addrs(); err == nil && !slices.Equal(now, addrs) {
			err = fmt.Errorf("its addresses are %v, not %v", now, addrs)
		}
		return err
	})
	w.until("the Service answers", func() error {
		host, _, err := curl(w.ctx, b.ns, netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIP), 80))
		return orWrong(err, host, "dies")
	})
	w.start("later", n1)
	t.Logf("all was caught up with %s after the API server was back", time.Since(back).Round(100*time.Millisecond))
	w.until("the nodes are Ready", func() error { return nodesReady(w.ctx) })
}

// replaceSandbox kills a Pod's sandbox, waits until the Pod answers in another one,
// and returns the addresses there. It does without the API server.
func (w *world) replaceSandbox(p pod) (addrs []netip.Addr) {
	w.t.Helper()
	began := time.Now()
	w.must(p.node.KillSandbox(w.ctx, string(p.UID)))
	w.until("the Pod answers in another sandbox", func() error {
		ns, err := p.node.PodNetNS(w.ctx, string(p.UID))
		if err == nil && ns == p.ns {
			err = errors.New("the sandbox is the old one")
		}
		if err != nil {
			return err
		}
		if addrs, err = lab.Addrs(ns, "eth0"); err != nil {
			return err
		}
		if len(addrs) != len(p.addrs()) {
			return fmt.Errorf("its addresses are %v", addrs)
		}
		host, _, err := curl(w.ctx, p.node.NetNS(), netip.AddrPortFrom(addrs[0], httpPort))
		return orWrong(err, host, p.Name)
	})
	w.t.Logf("%s answers in a new sandbox %s after its old one was killed", p.Name, time.Since(began).Round(100*time.Millisecond))
	return addrs
}
