package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// checkedFlows looks at every flow change that the agent asks for.
type checkedFlows struct {
	podnet.Flows
	n       *node
	records *ifstore.Store // of the agent
	hooks   bool           // the parts below know nothing of the node's latencies and faults
}

// Install implements podnet.Flows.
func (c checkedFlows) Install(ctx context.Context, ifaces []ifstore.Interface) []error {
	c.look("Install", ifaces...)
	errs := c.with(ctx, "Install", ifaces, c.Flows.Install)
	c.alone(ifaces, errs)
	return errs
}

// Uninstall implements podnet.Flows.
func (c checkedFlows) Uninstall(ctx context.Context, ifaces []ifstore.Interface) []error {
	return c.with(ctx, "Uninstall", ifaces, c.Flows.Uninstall)
}

// Replace implements podnet.Flows.
func (c checkedFlows) Replace(ctx context.Context, old, new ifstore.Interface) error {
	c.look("Replace", new)
	errs := c.with(ctx, "Replace", []ifstore.Interface{new}, func(ctx context.Context, _ []ifstore.Interface) []error {
		return []error{c.Flows.Replace(ctx, old, new)}
	})
	c.alone([]ifstore.Interface{new}, errs)
	return errs[0]
}

// alone is the rule that a number has flows of one interface. Those that are
// going away excepted: their removal may wait for something else.
func (c checkedFlows) alone(ifaces []ifstore.Interface, errs []error) {
	for i, iface := range ifaces {
		if errs[i] != nil {
			continue
		}
		for o, key := range c.n.keys {
			if key == iface.Key || !slices.Contains(c.n.of.numbers(key), iface.OFPort) {
				continue
			}
			if record, ok := c.records.Get(key); ok && record.State != ifstore.StateWithdrawing {
				c.n.breach("flows of %s went in on OpenFlow port %d, where flows of c%d stand (%s)", iface.Key, iface.OFPort, o, record.State)
			}
		}
	}
}

// look is the rule that a number reaches a flow only if OVSDB gave it to that
// very row and, where nobody waits in Add for OVSDB alone, OpenFlow told of it. (That it is out of date by now cannot be excluded.)
func (c checkedFlows) look(op string, ifaces ...ifstore.Interface) {
	for _, i := range ifaces {
		row, listed := c.n.vs.had(i.Gen, i.Name, i.OFPort)
		switch {
		case i.OFPort < 1 || i.OFPort > 0xfeff:
			c.n.breach("%s of %s on OpenFlow port %d", op, i.Key, i.OFPort)
		case !row:
			c.n.breach("%s of %s on OpenFlow port %d, which that row (%s) never had", op, i.Key, i.OFPort, i.Gen)
		case !listed && op != "Replay" && c.n.sched.Readiness != Waiting:
			c.n.breach("%s of %s on OpenFlow port %d, which OpenFlow never told of", op, i.Key, i.OFPort)
		}
	}
}

func (c checkedFlows) with(ctx context.Context, op string, ifaces []ifstore.Interface, fn func(context.Context, []ifstore.Interface) []error) []error {
	if !c.hooks {
		return fn(ctx, ifaces)
	}
	errs := make([]error, len(ifaces))
	var due []ifstore.Interface
	var at []int
	for i, iface := range ifaces {
		if errs[i] = c.n.hook(ctx, podnettest.FaultCall{Op: op, Subject: iface.Key.String()}); errs[i] == nil {
			due, at = append(due, iface), append(at, i)
		}
	}
	if len(due) == 0 {
		return errs
	}
	results := fn(ctx, due)
	if len(results) != len(due) {
		c.n.breach("%s of %d interfaces gave %d results", op, len(due), len(results))
		return results
	}
	for r, err := range results {
		if errs[at[r]] = err; err == nil {
			errs[at[r]] = c.n.hook(ctx, podnettest.FaultCall{Op: op, Subject: due[r].Key.String(), Done: true})
		}
	}
	return errs
}

// replay is for Network.Replay around fn.
func (c checkedFlows) replay(ctx context.Context, net *podnet.Network, fn func(context.Context, []ifstore.Interface) error) error {
	return net.Replay(ctx, func(ctx context.Context, ifaces []ifstore.Interface) error {
		c.look("Replay", ifaces...)
		by := make(map[uint32]ifstore.Key)
		for _, i := range ifaces {
			if other, ok := by[i.OFPort]; ok {
				c.n.breach("replay of %s and %s on the same OpenFlow port %d", other, i.Key, i.OFPort)
			}
			by[i.OFPort] = i.Key
		}
		if err := fn(ctx, ifaces); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		c.n.unknown.replayed(c.n)
		return nil
	})
}
