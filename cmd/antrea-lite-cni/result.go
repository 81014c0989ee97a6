package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// parsePrev reads prevResult, which may be of any CNI version; one without a
// version of its own has the configuration's. No prevResult: nil.
func parsePrev(conf *netConf) (*current.Result, error) {
	if conf.PrevResult == nil {
		return nil, nil
	}
	bad := func(err error) error {
		return types.NewError(cniapi.CodeConfig, fmt.Sprintf("prevResult is not usable: %v", err), "the container runtime has to pass the previous plugin's result unchanged")
	}
	raw := map[string]any{}
	if err := json.Unmarshal(conf.PrevResult, &raw); err != nil {
		return nil, bad(err)
	}
	own, _ := raw["cniVersion"].(string)
	if own == "" {
		own = conf.CNIVersion
		raw["cniVersion"] = own
	}
	b, err := json.Marshal(raw)
	if err != nil {
		return nil, bad(err)
	}
	res, err := create.Create(own, b)
	if err != nil {
		return nil, bad(err)
	}
	prev, err := current.NewResultFromResult(res)
	if err != nil {
		return nil, bad(err)
	}
	return prev, nil
}

// buildResult appends our interface to the result of the plugins before us in a chain.
func buildResult(req *cniapi.Request, iface *cniapi.Interface, dns types.DNS, prev *current.Result) *current.Result {
	res := &current.Result{CNIVersion: current.ImplementedSpecVersion}
	if prev != nil {
		res.Interfaces, res.IPs, res.Routes, res.DNS = prev.Interfaces, prev.IPs, prev.Routes, prev.DNS
	}
	if !dns.IsEmpty() {
		res.DNS = dns
	}
	container := len(res.Interfaces) + 1
	res.Interfaces = append(res.Interfaces,
		&current.Interface{Name: iface.Host, Mtu: iface.MTU},
		&current.Interface{Name: req.IfName, Mac: iface.MAC, Mtu: iface.MTU, Sandbox: req.NetNS})
	for _, a := range iface.Addresses {
		res.IPs = append(res.IPs, &current.IPConfig{Interface: current.Int(container), Address: ipNet(a.Prefix), Gateway: ipOf(a.Gateway)})
	}
	for _, r := range iface.Routes {
		res.Routes = append(res.Routes, &types.Route{Dst: ipNet(r.Dst), GW: ipOf(r.GW), MTU: r.MTU})
	}
	return res
}

// inVersion converts the result; fields that a version does not know are left out.
func inVersion(res *current.Result, v string) (types.Result, error) {
	newest, err := version.GreaterThanOrEqualTo(v, "1.1.0")
	if err != nil {
		return nil, err
	}
	if !newest {
		for _, i := range res.Interfaces {
			i.Mtu, i.SocketPath, i.PciID = 0, "", ""
		}
		for _, r := range res.Routes {
			r.MTU, r.AdvMSS, r.Priority, r.Table, r.Scope = 0, 0, 0, nil, nil
		}
	}
	return res.GetAsVersion(v)
}

// wanted takes from a CHECK's prevResult what it says about our interface.
func wanted(prev *current.Result, ifName, netns string) (*cniapi.Want, error) {
	want := &cniapi.Want{}
	index := -1
	for i, in := range prev.Interfaces {
		// The name alone is not enough: the host's end may be called the same.
		if in.Name == ifName && in.Sandbox == netns {
			index, want.MAC = i, in.Mac
		}
	}
	if index < 0 {
		return nil, types.NewError(cniapi.CodeConfig, fmt.Sprintf("prevResult has no interface %q in sandbox %q", ifName, netns), "the container runtime has to pass the result of ADD unchanged")
	}
	for _, ip := range prev.IPs {
		if ip.Interface == nil || *ip.Interface != index {
			continue
		}
		if p, ok := prefixOf(ip.Address); ok {
			want.IPs = append(want.IPs, p)
		}
	}
	return want, nil
}

// wireDNS checks a resolver's configuration and words it for the agent.
func wireDNS(d types.DNS) (cniapi.DNS, error) {
	out := cniapi.DNS{Domain: d.Domain, Search: d.Search, Options: d.Options}
	for _, s := range d.Nameservers {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return out, confError("dns.nameservers", s, "name the server by its address")
		}
		out.Servers = append(out.Servers, a)
	}
	return out, nil
}

func ipNet(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func ipOf(a netip.Addr) net.IP { return a.AsSlice() }

// prefixOf converts an address with its mask; IPv4 may come in 16 bytes.
func prefixOf(n net.IPNet) (netip.Prefix, bool) {
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, size := n.Mask.Size()
	if !ok || size == 0 {
		return netip.Prefix{}, false
	}
	addr = addr.Unmap()
	if addr.BitLen() != size {
		ones -= size - addr.BitLen()
	}
	p := netip.PrefixFrom(addr, ones)
	return p, p.IsValid()
}
