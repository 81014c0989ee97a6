package k8s

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/e2e/k8s/workload"
	"github.com/antrea-lite/podnet/e2e/lab"
)

// Ports of testpod's servers.
const (
	httpPort   = workload.HTTPPort
	digestPort = 8081
	udpPort    = 8082
)

// bulk is the size of a transfer that is long enough to meet every queue.
const bulk = 100 << 20

func TestPodsTalk(t *testing.T) {
	w := newWorld(t)
	a, b, far := w.three()
	tunnelled := strings.HasPrefix(options.network, "antrea-lite-")
	if tunnelled {
		w.tunnelCarries(a, far)
	}
	for _, route := range []struct {
		name     string
		from, to pod
	}{{"within a node", a, b}, {"across nodes", a, far}, {"across nodes, back", far, a}} {
		for i, from := range route.from.at() {
			to := route.to.at()[i]
			t.Run(route.name+" "+family(to.Addr), func(t *testing.T) { talk(t, from, to) })
		}
	}
	if tunnelled {
		w.wentThroughTheTunnel(a)
	}
}

func family(a netip.Addr) string {
	if a.Is6() {
		return "IPv6"
	}
	return "IPv4"
}

// talk tries everything that two endpoints may say to each other.
func talk(t *testing.T, from, to lab.Endpoint) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := lab.Ping(from.NS, from.Addr, to.Addr, 56, 3*time.Second); err != nil {
		t.Errorf("ping: %v", err)
	}
	full := largestEcho(t, from)
	if _, err := lab.Ping(from.NS, from.Addr, to.Addr, full, 3*time.Second); err != nil {
		t.Errorf("ping of the interface's full size: %v", err)
	}
	if _, err := lab.Ping(from.NS, from.Addr, to.Addr, full+1, 3*time.Second); !errors.Is(err, syscall.EMSGSIZE) {
		t.Errorf("ping of one byte more: %v, want that it is too long", err)
	}
	echo, err := lab.UDPEcho(to)
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	if err := lab.AskUDP(ctx, from, echo.Addr()); err != nil {
		t.Errorf("UDP: %v", err)
	}
	transfer, err := lab.SendTCP(ctx, from, to, bulk)
	if err != nil {
		t.Fatalf("TCP: %v", err)
	}
	t.Logf("100 MB in %s, %.0f Mbit/s", transfer.Took.Round(time.Millisecond), transfer.MbitPerSecond())
}

// largestEcho is the payload of an echo request that fills the sender's MTU.
func largestEcho(t *testing.T, from lab.Endpoint) int {
	mtu, err := lab.MTU(from.NS, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	const icmp = 8
	if from.Addr.Is6() {
		return mtu - 40 - icmp
	}
	return mtu - 20 - icmp
}

func TestNodesReachPods(t *testing.T) {
	w := newQuietWorld(t)
	p := w.start("a", w.Nodes()[0])
	reach := func(ns string, from, to netip.Addr) {
		t.Helper()
		// Scenarios beside this one may fill queues for a moment.
		w.until("the ping is answered", func() error {
			_, err := lab.Ping(ns, from, to, 56, 3*time.Second)
			return err
		})
	}
	for i, at := range p.addrs() {
		for _, n := range w.Nodes() {
			reach(n.NetNS(), netip.Addr{}, at)
			reach(p.ns, at, w.Addresses(n)[i])
		}
	}
}

func TestPodsReachTheAPIServer(t *testing.T) {
	w := newQuietWorld(t)
	for _, n := range w.Nodes() {
		p := w.start("on-"+n.Name, n)
		// Its certificate is checked against the authority that every Pod is given.
		_, err := w.exec(p, "sh", "-c", "SSL_CERT_FILE=/var/run/secrets/kubernetes.io/serviceaccount/ca.crt /testpod get https://$KUBERNETES_SERVICE_HOST/version")
		if err != nil {
			t.Error(err)
		}
	}
}

func TestExecAndLogs(t *testing.T) {
	w := newQuietWorld(t)
	p := w.start("a", w.Nodes()[1])
	out, err := w.exec(p, "hostname")
	w.must(err)
	if strings.TrimSpace(out) != "a" {
		t.Errorf("hostname in Pod a is %q", out)
	}
	_, err = w.Kubectl(w.ctx, "logs", "-n", w.namespace, "a")
	w.must(err)
}

// curl asks a testpod from a namespace, by any address that leads to it, and
// returns the server's name and the address that it saw us at.
func curl(ctx context.Context, ns string, to netip.AddrPort) (host, seen string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	body, err := lab.Get(ctx, lab.Endpoint{NS: ns}, fmt.Sprintf("http://%s/", to))
	if err != nil {
		return "", "", err
	}
	if _, err := fmt.Sscan(body, &host, &seen); err != nil {
		return "", "", fmt.Errorf("answer %q: %w", body, err)
	}
	return host, seen, nil
}
