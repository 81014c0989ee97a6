package podflows

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// flushSupport is what is known of the switch: conntrack can be flushed by
// OpenFlow from OVS 3.1 on.
type flushSupport uint8

const (
	flushUntried flushSupport = iota
	flushRefused
)

// flushConnections forgets every connection that began at or goes to one of
// the addresses. Only untagged interfaces are tracked. No connection is
// translated in this zone, so the original direction names both ends.
func (i *Installer) flushConnections(ctx context.Context, ifaces []ifstore.Interface) error {
	i.mu.Lock()
	refused := i.flush == flushRefused
	i.mu.Unlock()
	if refused {
		return nil
	}
	var msgs []ofp.Message
	for _, iface := range ifaces {
		if iface.VLAN != 0 {
			continue
		}
		for _, a := range iface.IPs() {
			if !a.IsValid() {
				continue
			}
			a = a.WithZone("")
			for _, proto := range flushedProtocols(a) {
				msgs = append(msgs,
					&ofp.CTFlush{Zone: ctZone, Proto: proto, Orig: ofp.CTTuple{Src: a}},
					&ofp.CTFlush{Zone: ctZone, Proto: proto, Orig: ofp.CTTuple{Dst: a}})
			}
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	err := i.sender.Send(ctx, msgs...)
	if answer, ok := errors.AsType[*ofp.Error](err); ok && notSupported(answer) {
		i.mu.Lock()
		first := i.flush != flushRefused
		i.flush = flushRefused
		i.mu.Unlock()
		if first {
			klog.FromContext(ctx).Info("The switch cannot flush conntrack by OpenFlow (that takes Open vSwitch 3.1); connections of removed Pods stay until they time out", "answer", answer.Error())
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("forget the connections of removed addresses: %w", err)
	}
	return nil
}

// flushedProtocols lists the IP protocols to flush for an address; 0 is all at
// once. That must never reach an ICMPv6 connection: to delete one, the userspace
// conntrack of Open vSwitch 3.1 looks its type up among those of ICMPv4
// (tuple_to_conn_key) and aborts, so that a ping followed by a DEL ended
// ovs-vswitchd. Echoes and rarer protocols over IPv6 time out by themselves.
func flushedProtocols(a netip.Addr) []uint8 {
	if a.Is4() {
		return []uint8{0}
	}
	return []uint8{protoTCP, protoUDP, protoSCTP}
}

// notSupported tells "I do not know that message", or not for this datapath, from a refusal of its content.
func notSupported(e *ofp.Error) bool {
	const nxrNotSupported = 34
	return e.ErrType == ofp.ErrTypeBadRequest || e.ErrType == ofp.ErrTypeExperimenter && e.Code == nxrNotSupported
}
