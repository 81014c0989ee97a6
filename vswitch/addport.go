package vswitch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/ovn-org/libovsdb/ovsdb"

	"github.com/antrea-lite/podnet/internal/join"
	"github.com/antrea-lite/podnet/podnet"
)

// maxName is the longest port name that OpenFlow does not cut (and that Linux
// gives a netdev): 16 bytes with the terminating zero.
const maxName = 15

// ownerID is the external_ids key that alone proves who made a port.
const ownerID = "podnet-owner"

// addition is one port to insert. The UUIDs are ours (an extension of
// ovsdb-server 2.13), so that the row proves what became of the insert.
type addition struct {
	port       podnet.Port
	iface, row string // UUIDs of the Interface and Port rows
	mac        string // for an internal port; "": Open vSwitch chooses
	options    map[string]string
}

// AddPort inserts a port and returns the key of the new row. The row is
// committed then; its number comes later. A name that is taken:
// podnet.ErrPortExists, which names the holder. When ctx ends first the
// committer removes the row again, should it have come to be.
func (c *Client) AddPort(ctx context.Context, port podnet.Port) (podnet.PortKey, error) {
	return c.add(ctx, addition{port: port})
}

func (c *Client) add(ctx context.Context, a addition) (podnet.PortKey, error) {
	name := a.port.Name
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "/ \t\n") {
		return podnet.PortKey{}, fmt.Errorf("port name %q: %w: want 1 to %d characters without blanks and slashes", name, podnet.ErrBadRequest, maxName)
	}
	if err := checkText(name, a.port.ExternalIDs); err != nil {
		return podnet.PortKey{}, err
	}
	a.iface, a.row = uuid.NewString(), uuid.NewString()
	key, err := joined(ctx, c, c.adds, a)
	if err != nil {
		return podnet.PortKey{}, fmt.Errorf("add port %s to bridge %s: %w", name, c.cfg.Bridge, err)
	}
	return key, nil
}

// joined hands a change to its joiner once there is a connection: who gives up
// before knows that nothing was sent, who gives up later that it may have been.
func joined[T, R any](ctx context.Context, c *Client, j *join.Joiner[T, R], item T) (R, error) {
	if _, err := c.ready(ctx); err != nil {
		var none R
		return none, err
	}
	r, err := j.Do(ctx, item)
	if errors.Is(err, join.ErrInFlight) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.session == nil {
			err = fmt.Errorf("OVSDB at %s is away (%s): %w", c.cfg.Endpoint, c.lastError(), err)
		}
		err = fmt.Errorf("%w: %w", podnet.ErrOutcomeUnknown, err)
	}
	return r, err
}

// checkText refuses strings that ovsdb-server answers by hanging up.
func checkText(name string, ids map[string]string) error {
	bad := func(s string) bool { return !utf8.ValidString(s) || strings.ContainsRune(s, 0) }
	for k, v := range ids {
		if bad(k) || bad(v) || k == "" {
			return fmt.Errorf("port %s: external_ids %q=%q: %w: want UTF-8 text without NUL", name, k, v, podnet.ErrBadRequest)
		}
	}
	if bad(name) {
		return fmt.Errorf("port name %q: %w: want UTF-8 text without NUL", name, podnet.ErrBadRequest)
	}
	return nil
}

func (c *Client) runAdds(ctx context.Context, adds []addition) []join.Result[podnet.PortKey] {
	errs := c.commit(ctx, batch{
		kind: "add", n: len(adds),
		key:    func(i int) string { return adds[i].port.Name },
		settle: func(t *tables, i int) (bool, error) { return c.settleAdd(t, adds[i]) },
		plan: func(t *tables, items []int) ([]ovsdb.Operation, []int) {
			var ops []ovsdb.Operation
			var owner []int
			rows := make([]any, 0, len(items))
			for _, i := range items {
				ops = append(ops, adds[i].inserts()...)
				owner = append(owner, i, i)
				rows = append(rows, ovsdb.UUID{GoUUID: adds[i].row})
			}
			ops = append(ops, mutatePorts(t.bridge(c.cfg.Bridge).UUID, ovsdb.MutateOperationInsert, rows))
			return ops, append(owner, -1)
		},
		gone: c.noBridge(),
	})
	results := make([]join.Result[podnet.PortKey], len(adds))
	for i, a := range adds {
		results[i].Value, results[i].Err = podnet.PortKey{Name: a.port.Name, Gen: a.iface}, c.nameHolder(a, duplicate(errs[i]))
	}
	return results
}

// settleAdd finds out before a transaction what it would run into: a duplicate
// name fails a joined transaction as a whole, and only at its commit.
func (c *Client) settleAdd(t *tables, a addition) (bool, error) {
	if f, ok := t.byGen(a.iface); ok && f.bridge != nil {
		return true, nil
	}
	b := t.bridge(c.cfg.Bridge)
	if b == nil {
		return false, c.noBridge()
	}
	gen, taken := t.byName[a.port.Name]
	if !taken {
		var p *portRow
		if p = t.port(t.portName[a.port.Name]); p == nil {
			return false, nil
		}
		return false, fmt.Errorf("%w: Port row %s has that name (%s)", podnet.ErrPortExists, p.UUID, owner(p.ExternalIDs))
	}
	f, _ := t.byGen(gen)
	return false, portExists(gen, f)
}

// duplicate recognises the refusal of a name that another client took a moment
// before us. Names are the only unique columns of the two tables.
func duplicate(err error) error {
	var refused *opError
	if errors.As(err, &refused) && refused.name == "constraint violation" && refused.index < 0 {
		return fmt.Errorf("%w: %w", podnet.ErrPortExists, err)
	}
	return err
}

// nameHolder describes who won the race for a name, once our tables know: the
// server sends us its changes before the answer that they made fail.
func (c *Client) nameHolder(a addition, err error) error {
	if !errors.Is(err, podnet.ErrPortExists) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, better := c.settleAdd(c.tables, a); errors.Is(better, podnet.ErrPortExists) {
		return better
	}
	return err
}

// portExists describes who has the name.
func portExists(gen string, f found) error {
	where, ids := "no bridge", map[string]string(nil)
	if f.bridge != nil {
		where = "bridge " + f.bridge.Name
	}
	if f.port != nil {
		ids = f.port.ExternalIDs
	}
	return fmt.Errorf("%w: on %s, row %s, type %q, %s", podnet.ErrPortExists, where, gen, f.iface.Type, owner(ids))
}

func owner(ids map[string]string) string {
	switch {
	case ids[ownerID] != "":
		return fmt.Sprintf("owner %s, container %s, Pod %s/%s", ids[ownerID], ids["container-id"], ids["pod-namespace"], ids["pod-name"])
	case len(ids) > 0:
		return fmt.Sprintf("not podnet's, external_ids %v", ids)
	default:
		return "not podnet's, no external_ids"
	}
}

func (c *Client) noBridge() error {
	return fmt.Errorf("bridge %s does not exist in Open vSwitch; restart the agent to create it", c.cfg.Bridge)
}

func (a addition) inserts() []ovsdb.Operation {
	iface := ovsdb.Row{"name": a.port.Name}
	if a.port.Type != "" {
		iface["type"] = a.port.Type
	}
	if a.mac != "" {
		iface["mac"] = a.mac
	}
	if len(a.options) > 0 {
		iface["options"] = stringMap(a.options)
	}
	port := ovsdb.Row{"name": a.port.Name, "interfaces": ovsdb.UUID{GoUUID: a.iface}}
	if len(a.port.ExternalIDs) > 0 {
		port["external_ids"] = stringMap(a.port.ExternalIDs)
	}
	return []ovsdb.Operation{
		{Op: ovsdb.OperationInsert, Table: tableInterface, UUID: a.iface, Row: iface},
		{Op: ovsdb.OperationInsert, Table: tablePort, UUID: a.row, Row: port},
	}
}

func stringMap(m map[string]string) ovsdb.OvsMap {
	out := ovsdb.OvsMap{GoMap: map[any]any{}}
	for k, v := range m {
		out.GoMap[k] = v
	}
	return out
}

func byUUID(uuid string) []ovsdb.Condition {
	return []ovsdb.Condition{ovsdb.NewCondition("_uuid", ovsdb.ConditionEqual, ovsdb.UUID{GoUUID: uuid})}
}

// mutatePorts adds to or removes from a bridge's ports without reading or
// writing the rest of the column, which grows with every Pod.
func mutatePorts(bridge string, how ovsdb.Mutator, rows []any) ovsdb.Operation {
	return ovsdb.Operation{
		Op: ovsdb.OperationMutate, Table: tableBridge, Where: byUUID(bridge),
		Mutations: []ovsdb.Mutation{*ovsdb.NewMutation("ports", how, ovsdb.OvsSet{GoSet: rows})},
	}
}

// removeAbandoned removes the rows of additions whose callers had left before
// the outcome was known.
func (c *Client) removeAbandoned(ctx context.Context, adds []addition, results []join.Result[podnet.PortKey]) {
	var keys []podnet.PortKey
	for i, r := range results {
		if r.Err == nil || errors.Is(r.Err, podnet.ErrOutcomeUnknown) {
			keys = append(keys, podnet.PortKey{Name: adds[i].port.Name, Gen: adds[i].iface})
		}
	}
	c.runDeletes(ctx, keys)
}
