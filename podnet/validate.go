package podnet

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/antrea-lite/podnet/ifstore"
)

const (
	maxIfName = 15 // IFNAMSIZ less its terminating zero; also what OpenFlow keeps of a port's name
	minMTU    = 68 // RFC 791
	minMTU6   = 1280
	maxMTU    = 65535
	maxVLAN   = 4094
)

// validate finds what can never succeed, before anything is made.
func (r Request) validate(haveAddresses bool) error {
	if err := validateKey(r.Key); err != nil {
		return err
	}
	if err := validatePod(r.Pod); err != nil {
		return err
	}
	if err := validateHostDevice(r.HostDevice); err != nil {
		return err
	}
	if r.NetNS == "" {
		return bad("network namespace", r.NetNS, "must not be empty")
	}
	if !printable(r.NetNS) {
		return bad("network namespace", r.NetNS, "has characters that cannot be printed")
	}
	if r.MAC[0]&1 != 0 {
		return bad("MAC address", r.MAC, "is a group address; the lowest bit of its first byte must be 0")
	}
	if r.VLAN > maxVLAN {
		return bad("VLAN", r.VLAN, fmt.Sprintf("must be 1 to %d, or 0 for none", maxVLAN))
	}
	if r.MTU != 0 && (r.MTU < minMTU || r.MTU > maxMTU) {
		return bad("MTU", r.MTU, fmt.Sprintf("must be %d to %d, or 0 for the default", minMTU, maxMTU))
	}
	switch {
	case r.NoIPAM && (r.IPAM != "" || len(r.Addresses)+len(r.Routes)+len(r.WantIPs) > 0):
		return bad("IPAM", r.IPAM, "an interface without IPAM can have no addresses, wanted addresses or routes")
	case r.IPAM == "" && haveAddresses && len(r.Addresses) > 0:
		return bad("IPAM", r.IPAM, "addresses in the request need the name of who owns them")
	}
	return validateAddressing(r)
}

func validateKey(key ifstore.Key) error {
	if !isContainerID(key.ContainerID) {
		return bad("container id", key.ContainerID, "must be letters, digits, '_', '.' and '-', and begin with a letter or digit")
	}
	name := key.IfName
	switch {
	case name == "" || len(name) > maxIfName:
		return bad("interface name", name, fmt.Sprintf("must have 1 to %d bytes", maxIfName))
	case name == "." || name == "..":
		return bad("interface name", name, "is a directory")
	case strings.ContainsAny(name, "/:") || strings.ContainsFunc(name, unicode.IsSpace) || !printable(name):
		return bad("interface name", name, "must have no slash, colon or space in it")
	}
	return nil
}

// validateHostDevice looks at the name of a device that others make; it becomes the port's name.
func validateHostDevice(name string) error {
	switch {
	case len(name) > maxIfName:
		return bad("host device", name, fmt.Sprintf("must have at most %d bytes; OpenFlow cuts longer names", maxIfName))
	case name == "." || name == ".." || strings.ContainsAny(name, "/:%") || strings.ContainsFunc(name, unicode.IsSpace) || !printable(name):
		return bad("host device", name, "is no name of an interface")
	}
	return nil
}

// isContainerID tests for the form that the CNI specification demands:
// ^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$
func isContainerID(id string) bool {
	for i := range len(id) {
		c := id[i]
		alphanumeric := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alphanumeric && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return id != ""
}

func validatePod(pod ifstore.Pod) error {
	if (pod.Name == "") != (pod.Namespace == "") {
		return bad("Pod", pod, "needs both a namespace and a name, or neither")
	}
	for _, part := range []string{pod.Namespace, pod.Name, pod.UID} {
		if len(part) > 253 || strings.ContainsRune(part, '/') || strings.ContainsFunc(part, unicode.IsSpace) || !printable(part) {
			return bad("Pod", pod, fmt.Sprintf("%q is no name that Kubernetes gives", part))
		}
	}
	return nil
}

// validateAddressing looks at addresses, routes and wanted addresses.
func validateAddressing(r Request) error {
	seen := make(map[netip.Addr]bool)
	for _, a := range r.Addresses {
		ip := a.Prefix.Addr()
		switch {
		case !a.Prefix.IsValid():
			return bad("address", a.Prefix, "is no address with prefix length")
		case seen[ip]:
			return bad("address", ip, "is listed twice")
		case a.Gateway.IsValid() && (a.Gateway.Is4() != ip.Is4() || a.Gateway.Zone() != ""):
			return bad("gateway", a.Gateway, fmt.Sprintf("does not fit address %s", a.Prefix))
		case ip.Is6() && r.MTU != 0 && r.MTU < minMTU6:
			return bad("MTU", r.MTU, fmt.Sprintf("is below %d, which IPv6 (address %s) needs", minMTU6, a.Prefix))
		}
		if err := validateHost("address", ip); err != nil {
			return err
		}
		seen[ip] = true
	}
	for _, route := range r.Routes {
		switch {
		case !route.Dst.IsValid() || route.Dst.Addr().Is4In6():
			return bad("route", route.Dst, "is no destination with prefix length")
		case route.GW.IsValid() && route.GW.Is4() != route.Dst.Addr().Is4():
			return bad("route gateway", route.GW, fmt.Sprintf("is not of the family of %s", route.Dst))
		case route.GW.Zone() != "":
			return bad("route gateway", route.GW, "must have no zone")
		case route.MTU < 0 || route.MTU > maxMTU:
			return bad("route MTU", route.MTU, fmt.Sprintf("must be 0 to %d", maxMTU))
		}
	}
	wanted := make(map[netip.Addr]bool)
	for _, ip := range r.WantIPs {
		if err := validateHost("wanted address", ip); err != nil {
			return err
		}
		if wanted[ip] {
			return bad("wanted address", ip, "is listed twice")
		}
		wanted[ip] = true
	}
	return nil
}

func validateHost(what string, ip netip.Addr) error {
	switch {
	case !ip.IsValid():
		return bad(what, ip, "is no address")
	case ip.Is4In6():
		return bad(what, ip, "is IPv4 in IPv6 clothes; write it as IPv4")
	case ip.Zone() != "":
		return bad(what, ip, "must have no zone")
	case ip.IsUnspecified() || ip.IsMulticast() || ip.IsLoopback():
		return bad(what, ip, "is no address of a host on the network")
	}
	return nil
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func bad(what string, value any, why string) error {
	return fmt.Errorf("%w: %s %q: %s", ErrBadRequest, what, fmt.Sprint(value), why)
}

// mismatch tells how a repeated request differs from the interface that is
// there; "" when it asks for the same. What the request leaves open matches.
func (r Request) mismatch(have ifstore.Interface) error {
	var errs []error
	differ := func(what string, have, want any) {
		errs = append(errs, fmt.Errorf("%s is %v, the request says %v", what, have, want))
	}
	if r.Pod.String() != have.Pod.String() {
		differ("Pod", quoted(have.Pod.String()), quoted(r.Pod.String()))
	}
	if r.Pod.UID != "" && have.Pod.UID != "" && r.Pod.UID != have.Pod.UID {
		differ("Pod UID", have.Pod.UID, r.Pod.UID)
	}
	if r.NetNS != have.NetNS {
		differ("network namespace", have.NetNS, r.NetNS)
	}
	if r.HostDevice != "" && r.HostDevice != have.Name {
		differ("host device", have.Name, r.HostDevice)
	}
	if !r.MAC.IsZero() && r.MAC != have.MAC {
		differ("MAC address", have.MAC, r.MAC)
	}
	if r.MTU != 0 && r.MTU != have.MTU {
		differ("MTU", have.MTU, r.MTU)
	}
	if r.VLAN != have.VLAN {
		differ("VLAN", have.VLAN, r.VLAN)
	}
	if r.IPAM != "" && r.IPAM != have.IPAM {
		differ("IPAM", quoted(have.IPAM), quoted(r.IPAM))
	}
	want := slices.Clone(r.WantIPs)
	for _, a := range r.Addresses {
		want = append(want, a.Prefix.Addr())
	}
	for _, ip := range want {
		if !slices.Contains(have.IPs(), ip) {
			differ("addresses", have.IPs(), ip)
		}
	}
	if r.NoIPAM && len(have.Addresses) > 0 {
		differ("addresses", have.IPs(), "none")
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the interface exists with other parameters: %w", ErrBadRequest, join(errs...))
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
