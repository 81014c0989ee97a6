package k8s

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/lab"
)

func TestNodeReboot(t *testing.T) {
	w := newWorld(t)
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	server, client := w.start("server", n1), w.start("client", n2)
	svc := w.service("web", "server", nil)
	to := netip.AddrPortFrom(netip.MustParseAddr(svc.Spec.ClusterIP), 80)
	answers := func() error {
		host, _, err := curl(w.ctx, client.ns, to)
		return orWrong(err, host, "server")
	}
	w.until("the Service answers", answers)
	began := time.Now()
	w.must(w.Reboot(w.ctx, n1))
	w.must(connection.Rebooted(w.ctx, w.Cluster))
	// Until the kubelet has spoken, the API server shows the life before.
	w.until("the Pod has been started again", func() error {
		p, err := w.Client().CoreV1().Pods(w.namespace).Get(w.ctx, "server", metav1.GetOptions{})
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
	again := w.ready("server", n1)
	if again.UID != server.UID {
		t.Errorf("the Pod is another one: UID %s, before %s", again.UID, server.UID)
	}
	if _, err := lab.Ping(again.ns, netip.Addr{}, client.addrs()[0], 56, 3*time.Second); err != nil {
		t.Errorf("ping from the rebooted node: %v", err)
	}
}

func restarts(p *corev1.Pod) (n int32) {
	for _, s := range p.Status.ContainerStatuses {
		n += s.RestartCount
	}
	return n
}

func TestAPIServerAway(t *testing.T) {
	w := newWorld(t)
	a, b := w.start("a", w.Nodes()[0]), w.start("b", w.Nodes()[1])
	w.must(w.StopAPI())
	ctx, cancel := context.WithTimeout(w.ctx, 5*time.Second)
	report, err := lab.PingStream(ctx, a.ns, a.addrs()[0], b.addrs()[0], 10*time.Millisecond)
	cancel()
	if err := errors.Join(err, w.StartAPI(w.ctx)); err != nil {
		t.Fatal(err)
	}
	if report.Lost > 0 {
		t.Errorf("%d of %d pings were lost while the API server was away", report.Lost, report.Sent)
	}
	w.start("later", w.Nodes()[0])
}
