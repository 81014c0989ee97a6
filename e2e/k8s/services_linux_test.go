package k8s

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// service makes a Service for the Pods with a label, on testpod's ports.
func (w *world) service(name, app string, change func(*corev1.ServiceSpec)) *corev1.Service {
	w.t.Helper()
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": app},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromInt32(httpPort)},
				{Name: "digest", Port: digestPort},
				{Name: "udp", Port: udpPort, Protocol: corev1.ProtocolUDP},
			},
		},
	}
	if options.dual {
		svc.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
	}
	if change != nil {
		change(&svc.Spec)
	}
	svc, err := w.Client().CoreV1().Services(w.namespace).Create(w.ctx, svc, metav1.CreateOptions{})
	w.must(err)
	return svc
}

func TestServices(t *testing.T) {
	w := newQuietWorld(t)
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	near, far, client := w.start("near", n1), w.start("far", n2), w.start("client", n1)
	for _, backend := range []pod{near, far} {
		svc := w.service(backend.Name, backend.Name, func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort })
		for i, ip := range svc.Spec.ClusterIPs {
			cluster := netip.MustParseAddr(ip)
			t.Run(fmt.Sprintf("ClusterIP to %s %s", backend.Name, family(cluster)), func(t *testing.T) {
				w := w.in(t)
				w.until("the Service answers", func() error { return askService(w, client, cluster, backend) })
				if _, err := w.exec(client, "/testpod", "-timeout=20s", "send", netip.AddrPortFrom(cluster, digestPort).String(), "10000000"); err != nil {
					t.Error(err)
				}
				w.until("a datagram comes back", func() error {
					_, err := w.exec(client, "/testpod", "udp", netip.AddrPortFrom(cluster, udpPort).String(), "1400")
					return err
				})
			})
			for _, n := range w.Nodes() {
				port := netip.AddrPortFrom(w.Addresses(n)[i], uint16(svc.Spec.Ports[0].NodePort))
				t.Run(fmt.Sprintf("NodePort of %s to %s %s", n.Name, backend.Name, family(port.Addr())), func(t *testing.T) {
					w := w.in(t)
					w.until("the port answers", func() error {
						host, _, err := curl(w.ctx, w.ControlNS(), port)
						return orWrong(err, host, backend.Name)
					})
				})
			}
		}
	}
}

// askService demands the right Pod's answer, and that it sees the client's own address.
func askService(w *world, client pod, service netip.Addr, backend pod) error {
	host, seen, err := curl(w.ctx, client.ns, netip.AddrPortFrom(service, 80))
	if err := orWrong(err, host, backend.Name); err != nil {
		return err
	}
	for _, a := range client.addrs() {
		if a.String() == seen {
			return nil
		}
	}
	return fmt.Errorf("%s saw the client at %s instead of %v", host, seen, client.addrs())
}

func orWrong(err error, got, want string) error {
	if err == nil && got != want {
		err = fmt.Errorf("%q answered instead of %q", got, want)
	}
	return err
}

func TestHairpin(t *testing.T) {
	w := newQuietWorld(t)
	p := w.start("a", w.Nodes()[0])
	svc := w.service("a", "a", nil)
	for _, ip := range svc.Spec.ClusterIPs {
		w.until("a Pod reaches itself by its Service", func() error {
			host, _, err := curl(w.ctx, p.ns, netip.AddrPortFrom(netip.MustParseAddr(ip), 80))
			return orWrong(err, host, "a")
		})
	}
}

func TestDNS(t *testing.T) {
	w := newQuietWorld(t)
	w.apply("e2e/k8s/manifests/coredns.yaml")
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	other := testPod(w.namespace, "other", n2.Name)
	other.Labels["app"] = "server"
	w.create(other)
	server, client := w.start("server", n1), w.start("client", n2)
	svc := w.service("web", "server", nil)
	w.service("headless", "server", func(s *corev1.ServiceSpec) { s.ClusterIP = corev1.ClusterIPNone })
	var backends []string
	for _, a := range append(server.addrs(), w.ready("other", n2).addrs()...) {
		backends = append(backends, a.String())
	}
	own := server.addrs()[0].String()
	for name, want := range map[string][]string{
		"web":                                  svc.Spec.ClusterIPs,
		"web." + w.namespace:                   svc.Spec.ClusterIPs,
		"kubernetes.default.svc.cluster.local": {"10.96.0.1"},
		"headless." + w.namespace + ".svc":     backends,
		strings.ReplaceAll(own, ".", "-") + "." + w.namespace + ".pod.cluster.local": {own},
	} {
		want = slices.Sorted(slices.Values(want))
		w.until("the name "+name+" is known", func() error {
			out, err := w.exec(client, "/testpod", "lookup", name)
			if err != nil {
				return err
			}
			if got := slices.Sorted(slices.Values(strings.Fields(out))); !slices.Equal(got, want) {
				return fmt.Errorf("%s is %v, not %v", name, got, want)
			}
			return nil
		})
	}
	if _, err := w.exec(client, "/testpod", "get", "http://web/"); err != nil {
		t.Error(err)
	}
}
