package k8s

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// TestNodePortPolicies: with externalTrafficPolicy Cluster every node serves every Pod
// and the client's address is hidden; with Local only the Pod's node does, and the Pod
// sees the client. Both backends are on one node, so that the other one has none.
func TestNodePortPolicies(t *testing.T) {
	w := newQuietWorld(t)
	home, other := w.Nodes()[0], w.Nodes()[1]
	w.start("backend", home)
	any := w.service("any", "backend", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort })
	local := w.service("local", "backend", func(s *corev1.ServiceSpec) {
		s.Type = corev1.ServiceTypeNodePort
		s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})
	for i, client := range w.Outside() {
		port := func(svc *corev1.Service, node netip.Addr) netip.AddrPort {
			return netip.AddrPortFrom(node, uint16(svc.Spec.Ports[0].NodePort))
		}
		at, elsewhere := w.Addresses(home)[i], w.Addresses(other)[i]
		for _, c := range []struct {
			name string
			to   netip.AddrPort
			kept bool
		}{
			{"Cluster, the Pod's node", port(any, at), false},
			{"Cluster, another node", port(any, elsewhere), false},
			{"Local, the Pod's node", port(local, at), true},
		} {
			t.Run(c.name+" "+family(client), func(t *testing.T) {
				w := w.in(t)
				w.until("the port answers", func() error {
					host, seen, err := curl(w.ctx, w.ControlNS(), c.to)
					if err := orWrong(err, host, "backend"); err != nil {
						return err
					}
					if kept := seen == client.String(); kept != c.kept {
						return fmt.Errorf("the Pod saw the client %s at %s", client, seen)
					}
					return nil
				})
			})
		}
		// The ports above were served, so the rules of this one are in too.
		if host, _, err := curl(w.ctx, w.ControlNS(), port(local, elsewhere)); err == nil {
			t.Errorf("Local, a node without Pods, %s: %s answered", family(client), host)
		}
	}
}

// TestHostPort: portmap serves it, chained behind antrea-lite-cni.
func TestHostPort(t *testing.T) {
	const port = 18080
	w := newQuietWorld(t)
	home, other := w.Nodes()[0], w.Nodes()[1]
	spec := testPod(w.namespace, "a", home.Name)
	spec.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: httpPort, HostPort: port}}
	w.create(spec)
	w.ready("a", home)
	neighbour, far := w.start("neighbour", home), w.start("far", other)
	for i, client := range w.Outside() {
		to := netip.AddrPortFrom(w.Addresses(home)[i], port)
		for _, from := range []struct {
			name, ns, seen string
		}{
			{"outside", w.ControlNS(), client.String()},
			{"another node", other.NetNS(), w.Addresses(other)[i].String()},
			// These go to a node's address, where Pods' own may be hidden.
			{"a Pod of the node", neighbour.ns, ""},
			{"a Pod of another node", far.ns, ""},
			{"the node itself", home.NetNS(), ""},
		} {
			host, seen, err := curl(w.ctx, from.ns, to)
			if err := orWrong(err, host, "a"); err != nil {
				t.Errorf("from %s by %s: %v", from.name, family(client), err)
			} else if from.seen != "" && seen != from.seen {
				t.Errorf("from %s by %s: the Pod saw %s, not %s", from.name, family(client), seen, from.seen)
			}
		}
	}
	w.must(w.Client().CoreV1().Pods(w.namespace).Delete(w.ctx, "a", metav1.DeleteOptions{}))
	w.until("the port is closed", func() error {
		host, _, err := curl(w.ctx, w.ControlNS(), netip.AddrPortFrom(w.Addresses(home)[0], port))
		if err == nil {
			return fmt.Errorf("%s answers", host)
		}
		return nil
	})
}

// TestMasquerade: other Pods and the node see a Pod at its own address; the world
// outside, other nodes included, sees it at its node's.
func TestMasquerade(t *testing.T) {
	needsAntreaLite(t)
	w := newQuietWorld(t)
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	p, near, far := w.start("a", n1), w.start("near", n1), w.start("far", n2)
	for i, own := range p.addrs() {
		for _, c := range []struct {
			name string
			to   lab.Endpoint
			want netip.Addr
		}{
			{"outside", lab.Endpoint{NS: w.ControlNS(), Addr: w.Outside()[i]}, w.Addresses(n1)[i]},
			{"its own node", lab.Endpoint{NS: n1.NetNS(), Addr: w.Addresses(n1)[i]}, own},
			{"another node", lab.Endpoint{NS: n2.NetNS(), Addr: w.Addresses(n2)[i]}, w.Addresses(n1)[i]},
			{"a Pod of its node", near.at()[i], own},
			{"a Pod of another node", far.at()[i], own},
		} {
			seen, err := seenAt(w, lab.Endpoint{NS: p.ns, Addr: own}, c.to)
			if err != nil || seen != c.want {
				t.Errorf("%s sees the Pod by %s at %v, not %s: %v", c.name, family(own), seen, c.want, err)
			}
		}
	}
}

// seenAt connects from one endpoint to another and returns where the other saw the caller.
func seenAt(w *world, from, to lab.Endpoint) (netip.Addr, error) {
	l, err := lab.Listen(to, 0)
	if err != nil {
		return netip.Addr{}, err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Second)
	defer cancel()
	conn, err := lab.Dial(ctx, from, netip.AddrPortFrom(to.Addr, l.Addr().(*net.TCPAddr).AddrPort().Port()))
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	accepted, err := l.Accept()
	if err != nil {
		return netip.Addr{}, err
	}
	defer accepted.Close()
	return accepted.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(), nil
}
