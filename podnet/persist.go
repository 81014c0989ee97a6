package podnet

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// Keys of the external_ids of an OVS port. The first group has Antrea's names,
// so that its tools read our ports; the second is ours. A key is left out when
// it has nothing to say.
const (
	idType         = "antrea-type" // always "container" on our ports
	idMAC          = "attached-mac"
	idIPs          = "ip-address" // comma-separated, without prefix lengths
	idContainer    = "container-id"
	idPodName      = "pod-name"
	idPodNamespace = "pod-namespace"
	idIfName       = "if-dev" // only when it is not eth0
	idNetNS        = "net-ns"

	idOwner     = "podnet-owner" // the only proof that a port is ours
	idPodUID    = "podnet-pod-uid"
	idIPAM      = "podnet-ipam"
	idLeased    = "podnet-leased"    // "true": Config.Addresses holds the addresses
	idState     = "podnet-state"     // "waiting": no flow was ever sent; "withdrawing": a removal has begun
	idTold      = "podnet-told"      // "true": the Pod was told NetworkNotReady, and not yet NetworkReady
	idAddresses = "podnet-addresses" // prefix[>gateway], comma-separated
	idRoutes    = "podnet-routes"    // destination[>gateway][@mtu], comma-separated
	idVLAN      = "podnet-vlan"
	idMTU       = "podnet-mtu"
	idCreated   = "podnet-created" // RFC 3339 with nanoseconds, UTC
	idExtra     = "podnet-x-"      // prefix of Interface.Extra's keys

	typeContainer = "container"
	defaultIfName = "eth0"
)

// EncodeExternalIDs returns the external_ids that make an interface
// recoverable. Name, Gen, OFPort, State and Waiting are not in them: the row
// itself or the next look at it has those.
func EncodeExternalIDs(owner string, i ifstore.Interface) map[string]string {
	ids := map[string]string{
		idType:         typeContainer,
		idOwner:        owner,
		idContainer:    i.ContainerID,
		idPodName:      i.Pod.Name,
		idPodNamespace: i.Pod.Namespace,
		idPodUID:       i.Pod.UID,
		idNetNS:        i.NetNS,
		idIPAM:         i.IPAM,
		idIPs:          joined(i.IPs(), netip.Addr.String),
		idAddresses:    joined(i.Addresses, encodeAddress),
		idRoutes:       joined(i.Routes, encodeRoute),
	}
	if i.IfName != defaultIfName {
		ids[idIfName] = i.IfName
	}
	if !i.MAC.IsZero() {
		ids[idMAC] = i.MAC.String()
	}
	if i.Leased {
		ids[idLeased] = "true"
	}
	if i.VLAN != 0 {
		ids[idVLAN] = strconv.Itoa(int(i.VLAN))
	}
	if i.MTU != 0 {
		ids[idMTU] = strconv.Itoa(i.MTU)
	}
	if !i.Created.IsZero() {
		ids[idCreated] = i.Created.UTC().Format(time.RFC3339Nano)
	}
	for k, v := range i.Extra {
		ids[idExtra+k] = v
	}
	maps.DeleteFunc(ids, func(_, v string) bool { return v == "" })
	return ids
}

func joined[T any](list []T, text func(T) string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = text(v)
	}
	return strings.Join(texts, ",")
}

func encodeAddress(a ifstore.Address) string {
	if a.Gateway.IsValid() {
		return a.Prefix.String() + ">" + a.Gateway.String()
	}
	return a.Prefix.String()
}

func encodeRoute(r ifstore.Route) string {
	s := r.Dst.String()
	if r.GW.IsValid() {
		s += ">" + r.GW.String()
	}
	if r.MTU != 0 {
		s += "@" + strconv.Itoa(r.MTU)
	}
	return s
}

// IsOurs reports whether external_ids carry owner's mark.
func IsOurs(owner string, ids map[string]string) bool { return owner != "" && ids[idOwner] == owner }

// AntreaPorts returns the names of ports that a running Antrea made: container
// ports without an owner mark. Two agents on one bridge would delete each
// other's flows, so an agent that finds any should refuse to start.
func AntreaPorts(ports []Port) []string {
	var names []string
	for _, p := range ports {
		if p.ExternalIDs[idType] == typeContainer && p.ExternalIDs[idOwner] == "" {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return names
}

// DecodeExternalIDs reads back what EncodeExternalIDs wrote. It accepts no
// port that it did not write itself: an error names the key at fault.
func DecodeExternalIDs(ids map[string]string) (ifstore.Interface, error) {
	i := ifstore.Interface{
		Key:   keyOf(ids),
		Pod:   ifstore.Pod{Namespace: ids[idPodNamespace], Name: ids[idPodName], UID: ids[idPodUID]},
		NetNS: ids[idNetNS],
		IPAM:  ids[idIPAM],
	}
	if kind := ids[idType]; kind != typeContainer {
		return ifstore.Interface{}, badID(idType, kind, fmt.Errorf("want %q", typeContainer))
	}
	if err := validateKey(i.Key); err != nil {
		return ifstore.Interface{}, badID(idContainer, i.ContainerID, err)
	}
	for _, field := range []struct {
		key   string
		parse func(string) error
	}{
		{idMAC, func(s string) (err error) { i.MAC, err = ifstore.ParseMAC(s); return err }},
		{idAddresses, func(s string) (err error) { i.Addresses, err = split(s, decodeAddress); return err }},
		{idRoutes, func(s string) (err error) { i.Routes, err = split(s, decodeRoute); return err }},
		{idVLAN, func(s string) error {
			vlan, err := strconv.ParseUint(s, 10, 12)
			if vlan > maxVLAN {
				return fmt.Errorf("want 1 to %d", maxVLAN)
			}
			i.VLAN = uint16(vlan)
			return err
		}},
		{idMTU, func(s string) error {
			mtu, err := strconv.ParseUint(s, 10, 16)
			i.MTU = int(mtu)
			return err
		}},
		{idCreated, func(s string) (err error) { i.Created, err = time.Parse(time.RFC3339Nano, s); return err }},
		{idLeased, func(s string) (err error) { i.Leased, err = strconv.ParseBool(s); return err }},
	} {
		if s := ids[field.key]; s != "" {
			if err := field.parse(s); err != nil {
				return ifstore.Interface{}, badID(field.key, s, err)
			}
		}
	}
	for k, v := range ids {
		if name, ok := strings.CutPrefix(k, idExtra); ok {
			if i.Extra == nil {
				i.Extra = make(map[string]string)
			}
			i.Extra[name] = v
		}
	}
	return i, nil
}

// keyOf returns the key that external_ids name, unchecked.
func keyOf(ids map[string]string) ifstore.Key {
	key := ifstore.Key{ContainerID: ids[idContainer], IfName: ids[idIfName]}
	if key.IfName == "" {
		key.IfName = defaultIfName
	}
	return key
}

func badID(key, value string, err error) error {
	return fmt.Errorf("external_ids:%s=%q: %w", key, value, err)
}

func split[T any](s string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for part := range strings.SplitSeq(s, ",") {
		v, err := parse(part)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func decodeAddress(s string) (ifstore.Address, error) {
	prefix, gateway, err := cutGateway(s)
	return ifstore.Address{Prefix: prefix, Gateway: gateway}, err
}

func decodeRoute(s string) (ifstore.Route, error) {
	var r ifstore.Route
	s, mtu, ok := strings.Cut(s, "@")
	if ok {
		n, err := strconv.ParseUint(mtu, 10, 16)
		if err != nil {
			return r, err
		}
		r.MTU = int(n)
	}
	var err error
	r.Dst, r.GW, err = cutGateway(s)
	return r, err
}

// cutGateway reads "prefix" or "prefix>gateway".
func cutGateway(s string) (prefix netip.Prefix, gateway netip.Addr, err error) {
	s, gw, ok := strings.Cut(s, ">")
	if prefix, err = netip.ParsePrefix(s); err != nil || !ok {
		return prefix, netip.Addr{}, err
	}
	gateway, err = netip.ParseAddr(gw)
	return prefix, gateway, err
}
