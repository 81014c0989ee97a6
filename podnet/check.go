package podnet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
)

// Want is what the caller of CheckAgainst believes about an interface. Zero
// fields are not compared.
type Want struct {
	NetNS string
	MAC   ifstore.MAC
	IPs   []netip.Addr // all of them
	MTU   int
}

// Check compares an interface with everything that belongs to it: the record's
// state, the cable, the port's row and number, the flows where they can be read
// back, and the reservation of its addresses. The error names each difference;
// ErrNotFound for a key that nobody knows. Errors are *OpError.
func (n *Network) Check(ctx context.Context, key ifstore.Key) error {
	return n.CheckAgainst(ctx, key, Want{})
}

// CheckAgainst is Check with what the caller was told when the interface was
// made (CNI: prevResult).
func (n *Network) CheckAgainst(ctx context.Context, key ifstore.Key, want Want) (err error) {
	have, _ := n.store.Get(key)
	c := n.startCall(OpCheck, key, have.Pod)
	defer func() { err = c.end(ctx, err) }()
	if err := c.step("validate", func() error { return validateKey(key) }); err != nil {
		return err
	}
	if err := c.step("start", func() error { return n.ensureReconciled(ctx) }); err != nil {
		return err
	}
	var unlock func()
	if err := c.step("lock", func() (err error) {
		if unlock, err = n.containers.lock(ctx, key.ContainerID); err != nil {
			return fmt.Errorf("%w: another operation of the container has not ended: %w", ErrTryAgain, err)
		}
		return nil
	}); err != nil {
		return err
	}
	defer unlock()
	iface, ok := n.store.Get(key)
	if !ok {
		return c.step("record", func() error { return fmt.Errorf("%w: %s", ErrNotFound, key) })
	}
	c.setPod(iface.Pod)
	var errs []error
	for _, part := range []struct {
		name string
		fn   func() error
	}{
		{"record", func() error { return checkRecord(iface, want) }},
		{"link", func() error { return n.cfg.Linker.Check(ctx, iface) }},
		{"port", func() error { return n.checkPort(ctx, iface) }},
		{"flows", func() error { return n.checkFlows(ctx, iface) }},
		{"addresses", func() error { return n.checkAddresses(ctx, iface) }},
	} {
		if err := c.step(part.name, part.fn); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", part.name, err))
		}
	}
	return c.step("compare", func() error { return join(errs...) })
}

func checkRecord(iface ifstore.Interface, want Want) error {
	var errs []error
	differ := func(what string, have, want any) {
		errs = append(errs, fmt.Errorf("%s is %v, want %v", what, have, want))
	}
	switch iface.State {
	case ifstore.StateReady:
	case ifstore.StateWaiting:
		errs = append(errs, fmt.Errorf("not ready, waiting for: %s", iface.Waiting))
	default:
		errs = append(errs, fmt.Errorf("not ready: %s", iface.State))
	}
	if want.NetNS != "" && want.NetNS != iface.NetNS {
		differ("network namespace", iface.NetNS, want.NetNS)
	}
	if !want.MAC.IsZero() && want.MAC != iface.MAC {
		differ("MAC address", iface.MAC, want.MAC)
	}
	if want.MTU != 0 && want.MTU != iface.MTU {
		differ("MTU", iface.MTU, want.MTU)
	}
	if want.IPs != nil {
		have, wanted := sortedIPs(iface.IPs()), sortedIPs(want.IPs)
		if !slices.Equal(have, wanted) {
			differ("addresses", have, wanted)
		}
	}
	return join(errs...)
}

func sortedIPs(ips []netip.Addr) []netip.Addr {
	return slices.SortedFunc(slices.Values(ips), netip.Addr.Compare)
}

// checkPort compares the row of the port, external_ids included, and the
// numbers that OVSDB, OpenFlow and the record have.
func (n *Network) checkPort(ctx context.Context, iface ifstore.Interface) error {
	ports, err := n.cfg.Bridge.Ports(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(ports, func(p Port) bool { return p.Name == iface.Name })
	switch {
	case at < 0:
		return fmt.Errorf("%s: %w", iface.Name, ErrNoPort)
	case ports[at].Gen != iface.Gen:
		return fmt.Errorf("%s: row %s was replaced by %s: %w", iface.Name, iface.Gen, ports[at].Gen, ErrNoPort)
	}
	var errs []error
	want, have := EncodeExternalIDs(n.cfg.Owner, iface), ports[at].ExternalIDs
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if have[key] != want[key] {
			errs = append(errs, fmt.Errorf("external_ids:%s is %q, want %q", key, have[key], want[key]))
		}
	}
	ofport, err := n.number(ctx, portKey(iface))
	if err != nil {
		errs = append(errs, err)
	} else if ofport != iface.OFPort {
		errs = append(errs, fmt.Errorf("OpenFlow port is %d, the flows use %d", ofport, iface.OFPort))
	}
	return join(errs...)
}

func (n *Network) checkFlows(ctx context.Context, iface ifstore.Interface) error {
	if iface.State != ifstore.StateReady {
		return errors.New("none are due yet")
	}
	checker, ok := n.cfg.Flows.(FlowChecker)
	if !ok {
		return nil
	}
	return checker.CheckFlows(ctx, iface)
}

func (n *Network) checkAddresses(ctx context.Context, iface ifstore.Interface) error {
	if n.cfg.Addresses == nil || !iface.Leased {
		return nil
	}
	return n.cfg.Addresses.Check(ctx, iface)
}
