package wine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// pod is one Pod of the node. Its methods may be called concurrently for
// different Pods.
type pod struct {
	n         *node
	name      string
	container string
	namespace string // of HNS
	host      string // name of port and endpoint, from the result
	mac       string
	addr      netip.Prefix
}

// newPod makes the namespace, as a container runtime does before ADD.
func (n *node) newPod(name string) (*pod, error) {
	ns, err := n.hns.CreateNamespace()
	if err != nil {
		return nil, err
	}
	return &pod{n: n, name: name, container: strings.ReplaceAll(uuid.NewString(), "-", ""), namespace: ns}, nil
}

func (p *pod) call(verb string) lab.Call {
	return lab.Call{Command: verb, ContainerID: p.container, NetNS: p.namespace, IfName: "eth0", Stdin: p.n.netConf(nil),
		Args: fmt.Sprintf("K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=%s", p.name, p.container)}
}

func (p *pod) add(ctx context.Context) error {
	res, err := p.n.plugin.Add(ctx, p.call("ADD"))
	if err != nil {
		return err
	}
	if len(res.Interfaces) != 2 || len(res.IPs) != 1 {
		return fmt.Errorf("result %+v", res)
	}
	p.host, p.mac = res.Interfaces[0].Name, res.Interfaces[1].Mac
	ones, _ := res.IPs[0].Address.Mask.Size()
	ip, _ := netip.AddrFromSlice(res.IPs[0].Address.IP)
	p.addr = netip.PrefixFrom(ip.Unmap(), ones)
	return nil
}

func (p *pod) del(ctx context.Context) error {
	_, err := p.n.plugin.Run(ctx, p.call("DEL"))
	return err
}

// check is CHECK with what the Pod's ADD gave.
func (p *pod) check(ctx context.Context) error {
	c := p.call("CHECK")
	c.Stdin = p.n.netConf(map[string]any{"prevResult": map[string]any{"cniVersion": "1.1.0",
		"interfaces": []any{map[string]any{"name": p.host}, map[string]any{"name": "eth0", "mac": p.mac, "sandbox": p.namespace}},
		"ips":        []any{map[string]any{"interface": 1, "address": p.addr.String()}}}})
	_, err := p.n.plugin.Run(ctx, c)
	return err
}

// remove is DEL, then the end of the namespace.
func (p *pod) remove(ctx context.Context) error {
	return errors.Join(p.del(ctx), p.n.hns.Delete(p.namespace))
}

// startContainer makes the vNIC.
func (p *pod) startContainer() error {
	e := p.n.hns.Endpoint(p.host)
	if e == nil {
		return fmt.Errorf("HNS has no endpoint %s: %v", p.host, p.n.hns.Endpoints())
	}
	_, err := p.n.hns.StartContainer(e.ID())
	return err
}

// row is the Pod's interface in OVSDB: its type and its number, "[]" without.
func (p *pod) row() (typ, ofport string, err error) {
	out, err := p.n.sw.Vsctl("get", "Interface", p.host, "type", "ofport")
	if err != nil {
		return "", "", err
	}
	typ, ofport, _ = strings.Cut(out, "\n")
	return strings.Trim(typ, `"`), ofport, nil
}

// wired says what the Pod lacks to have network.
func (p *pod) wired() error {
	typ, ofport, err := p.row()
	if err != nil {
		return err
	}
	if typ != "internal" || ofport == "[]" || ofport == "-1" {
		return fmt.Errorf("%s: type %q, number %s", p.name, typ, ofport)
	}
	flows, err := p.n.sw.Ofctl("--no-names", "dump-flows", "unix:"+p.n.sw.MgmtSock(bridge), "in_port="+ofport)
	if err != nil {
		return err
	}
	if !strings.Contains(flows, "in_port="+ofport) {
		return fmt.Errorf("%s: port %s has no flows", p.name, ofport)
	}
	return nil
}

// dark demands that the Pod waits: its type is not switched and no flow has its address.
func (p *pod) dark(t *testing.T) {
	t.Helper()
	if typ, ofport, err := p.row(); err != nil || typ != "" {
		t.Errorf("%s has no vNIC yet: type %q, number %s, %v", p.name, typ, ofport, err)
	}
	flows, err := p.n.sw.Ofctl("dump-flows", "unix:"+p.n.sw.MgmtSock(bridge))
	if err != nil || strings.Contains(flows, p.addr.Addr().String()) {
		t.Errorf("%s has no vNIC yet, and flows: %v", p.name, err)
	}
}

// enter moves the internal port that Open vSwitch made into a namespace of
// Linux, with the addresses that HNS gave: there it is a Pod that can speak.
func (p *pod) enter(t *testing.T) lab.Endpoint {
	t.Helper()
	path, err := nettest.NewNS(p.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nettest.DeleteNS(path); err != nil {
			t.Error(err)
		}
	})
	if err := p.move(path); err != nil {
		t.Fatalf("move %s into a namespace: %v", p.host, err)
	}
	return lab.Endpoint{NS: path, Addr: p.addr.Addr()}
}

func (p *pod) move(path string) error {
	ns, err := netns.GetFromPath(path)
	if err != nil {
		return err
	}
	defer ns.Close()
	link, err := netlink.LinkByName(p.host)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetNsFd(link, int(ns)); err != nil {
		return err
	}
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return err
	}
	defer h.Close()
	if link, err = h.LinkByName(p.host); err != nil {
		return err
	}
	mac, err := lab.ParseMAC(p.mac)
	if err != nil {
		return err
	}
	addr, err := netlink.ParseAddr(p.addr.String())
	if err != nil {
		return err
	}
	return errors.Join(h.LinkSetHardwareAddr(link, mac[:]), h.AddrAdd(link, addr), h.LinkSetUp(link))
}

// plug makes Pods, runs their ADDs at once and starts their containers.
func (n *node) plug(names ...string) []*pod {
	n.t.Helper()
	pods := n.plugWithout(names...)
	for _, p := range pods {
		if err := p.startContainer(); err != nil {
			n.t.Fatal(err)
		}
	}
	return pods
}

// plugWithout leaves the containers' start to the test.
func (n *node) plugWithout(names ...string) []*pod {
	n.t.Helper()
	pods := make([]*pod, len(names))
	n.all(len(names), func(ctx context.Context, i int) (err error) {
		if pods[i], err = n.newPod(names[i]); err != nil {
			return err
		}
		return pods[i].add(ctx)
	})
	return pods
}

func (n *node) allWired(pods ...*pod) {
	n.t.Helper()
	for _, p := range pods {
		n.eventually(p.name+" is wired", p.wired)
	}
}

// unplug removes Pods at once.
func (n *node) unplug(pods ...*pod) {
	n.t.Helper()
	n.all(len(pods), func(ctx context.Context, i int) error { return pods[i].remove(ctx) })
}

// all runs f for 0 to count-1 at once and demands success of each.
func (n *node) all(count int, f func(ctx context.Context, i int) error) {
	n.t.Helper()
	errs := make(chan error, count)
	for i := range count {
		go func() { errs <- f(n.t.Context(), i) }()
	}
	for range count {
		if err := <-errs; err != nil {
			n.t.Error(err)
		}
	}
	if n.t.Failed() {
		n.t.FailNow()
	}
}
