package cniserver

import (
	"context"
	"fmt"
	"time"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// defaultTimeout bounds a call whose caller told no limit.
const defaultTimeout = 2 * time.Minute

// deadline gives ctx the caller's limit.
func deadline(ctx context.Context, req *cniapi.Request) (context.Context, context.CancelFunc) {
	d := time.Duration(req.TimeoutMillis) * time.Millisecond
	if d <= 0 {
		d = defaultTimeout
	}
	return context.WithTimeout(ctx, d)
}

// checkKey demands what identifies an interface, for the verbs that are about one.
func checkKey(verb string, req *cniapi.Request) error {
	if verb == "GC" || verb == "STATUS" {
		return nil
	}
	if req.ContainerID == "" || req.IfName == "" {
		return &cniapi.Error{Code: cniapi.CodeEnvironment, Msg: fmt.Sprintf("%s needs a container id and an interface name: got %q and %q", verb, req.ContainerID, req.IfName),
			Details: "the container runtime sets CNI_CONTAINERID and CNI_IFNAME"}
	}
	if verb == "ADD" && req.NetNS == "" {
		return &cniapi.Error{Code: cniapi.CodeEnvironment, Msg: "ADD needs a network namespace", Details: "the container runtime sets CNI_NETNS"}
	}
	return nil
}

// translate checks the values of an ADD and makes them podnet's.
func translate(req *cniapi.Request) (podnet.Request, error) {
	bad := func(what string, value any, remedy string) error {
		return &cniapi.Error{Code: cniapi.CodeConfig, Msg: fmt.Sprintf("%s %v is not usable", what, value), Details: remedy}
	}
	out := podnet.Request{
		Key:   key(req.Attachment),
		Pod:   ifstore.Pod{Namespace: req.Pod.Namespace, Name: req.Pod.Name, UID: req.Pod.UID},
		NetNS: req.NetNS,
		MTU:   req.MTU,

		HostDevice: req.HostDevice,
		WantIPs:    req.WantIPs,
		DNS:        podnet.DNS{Servers: req.DNS.Servers, Domain: req.DNS.Domain, Search: req.DNS.Search, Options: req.DNS.Options},
	}
	if req.VLAN < 0 || req.VLAN > 4094 {
		return out, bad("vlan", req.VLAN, "an access VLAN is 1 to 4094, 0 means untagged")
	}
	out.VLAN = uint16(req.VLAN)
	if req.MAC != "" {
		mac, err := ifstore.ParseMAC(req.MAC)
		if err != nil || mac[0]&1 == 1 || mac.IsZero() {
			return out, bad("MAC address", fmt.Sprintf("%q", req.MAC), "use a unicast address of the form 0a:58:0a:0a:00:05")
		}
		out.MAC = mac
	}
	switch req.IPAM {
	case "":
	case cniapi.NoIPAM:
		out.NoIPAM = true
		if len(req.WantIPs) > 0 {
			return out, bad("requested address", req.WantIPs[0], "the network has no IPAM; remove the request or give the network an \"ipam\"")
		}
	default:
		out.IPAM = req.IPAM
		for _, a := range req.Addresses {
			if !a.Prefix.IsValid() {
				return out, bad("address", a.Prefix, "see the IPAM plugin "+req.IPAM)
			}
			out.Addresses = append(out.Addresses, ifstore.Address{Prefix: a.Prefix, Gateway: a.Gateway})
		}
		for _, r := range req.Routes {
			if !r.Dst.IsValid() {
				return out, bad("route", r.Dst, "see the IPAM plugin "+req.IPAM)
			}
			out.Routes = append(out.Routes, ifstore.Route{Dst: r.Dst, GW: r.GW, MTU: r.MTU})
		}
	}
	return out, nil
}

// answer is the interface in the wire's words.
func answer(iface ifstore.Interface) cniapi.Interface {
	out := cniapi.Interface{Host: iface.Name, MAC: iface.MAC.String(), MTU: iface.MTU, OFPort: iface.OFPort}
	for _, a := range iface.Addresses {
		out.Addresses = append(out.Addresses, cniapi.Address{Prefix: a.Prefix, Gateway: a.Gateway})
	}
	for _, r := range iface.Routes {
		out.Routes = append(out.Routes, cniapi.Route{Dst: r.Dst, GW: r.GW, MTU: r.MTU})
	}
	return out
}
