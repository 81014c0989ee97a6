package vswitch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
	"github.com/ovn-org/libovsdb/updates"
)

// tables is the copy of the monitored rows, with the look-ups that OVSDB does
// not have: references there point from bridge to port to interface only. It is
// not safe for concurrent use; Client guards it.
type tables struct {
	model model.DatabaseModel
	rows  map[string]map[string]model.Model // by table and UUID

	bridgeOf map[string]string // Port UUID -> Bridge UUID
	portOf   map[string]string // Interface UUID -> Port UUID
	byName   map[string]string // Interface name -> UUID
	portName map[string]string // Port name -> UUID
}

func newTables(m model.DatabaseModel) *tables {
	t := &tables{
		model: m, rows: map[string]map[string]model.Model{},
		bridgeOf: map[string]string{}, portOf: map[string]string{}, byName: map[string]string{}, portName: map[string]string{},
	}
	for table := range m.Types() {
		t.rows[table] = map[string]model.Model{}
	}
	return t
}

// changes tells what an update touched: the UUIDs of the rows, and the names
// of the interfaces whose view may have changed with them.
type changes struct {
	uuids []string
	names map[string]struct{}
}

// apply applies one update2 message or monitor reply (ovsdb-server(7), 4.1.12 and
// 4.1.14), whole. After an error the tables are unusable.
func (t *tables) apply(raw json.RawMessage) (c changes, err error) {
	// libovsdb indexes into sets and UUIDs without looking at their length.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("update from OVSDB is malformed: %v", p)
		}
	}()
	var updates ovsdb.TableUpdates2
	if err := json.Unmarshal(raw, &updates); err != nil {
		return c, fmt.Errorf("update from OVSDB is malformed: %w", err)
	}
	c.names = map[string]struct{}{}
	for table, rows := range updates {
		if t.rows[table] == nil {
			continue
		}
		for uuid, u := range rows {
			if u == nil {
				return c, fmt.Errorf("update from OVSDB is malformed: null row in table %s", table)
			}
			if err := t.applyRow(table, uuid, *u, &c); err != nil {
				return c, fmt.Errorf("update from OVSDB: table %s, row %s: %w", table, uuid, err)
			}
		}
	}
	t.nameMembers(&c)
	return c, nil
}

func (t *tables) applyRow(table, uuid string, u ovsdb.RowUpdate2, c *changes) error {
	current := t.rows[table][uuid]
	if u.Initial == nil && u.Insert == nil && current == nil {
		return fmt.Errorf("changed, and was never seen")
	}
	var mu updates.ModelUpdates
	if err := mu.AddRowUpdate2(t.model, table, uuid, current, u); err != nil {
		return err
	}
	return mu.ForEachModelUpdate(table, func(uuid string, _, next model.Model) error {
		t.replace(table, uuid, current, next, c)
		return nil
	})
}

// replace puts one row in the place of another (nil: none) and keeps the look-ups.
func (t *tables) replace(table, uuid string, old, next model.Model, c *changes) {
	c.uuids = append(c.uuids, uuid)
	if next == nil {
		delete(t.rows[table], uuid)
	} else {
		t.rows[table][uuid] = next
	}
	switch table {
	case tableInterface:
		o, _ := old.(*ifaceRow)
		n, _ := next.(*ifaceRow)
		if o != nil {
			dropIf(t.byName, o.Name, uuid)
			c.names[o.Name] = struct{}{}
		}
		if n != nil {
			t.byName[n.Name] = uuid
			c.names[n.Name] = struct{}{}
		}
	case tablePort:
		o, _ := old.(*portRow)
		n, _ := next.(*portRow)
		if o != nil {
			dropIf(t.portName, o.Name, uuid)
			relink(t.portOf, uuid, o.Interfaces, nil)
		}
		if n != nil {
			t.portName[n.Name] = uuid
			relink(t.portOf, uuid, nil, n.Interfaces)
		}
		// The row's own fields are part of every member's view.
		c.uuids = append(c.uuids, members(o, n)...)
	case tableBridge:
		var before, after []string
		if o, ok := old.(*bridgeRow); ok && o != nil {
			before = o.Ports
		}
		if n, ok := next.(*bridgeRow); ok && n != nil {
			after = n.Ports
		}
		c.uuids = append(c.uuids, relink(t.bridgeOf, uuid, before, after)...)
	}
}

// relink moves owner's references from before to after and returns those that
// are in one of them only.
func relink(owners map[string]string, owner string, before, after []string) []string {
	keep := make(map[string]bool, len(after))
	for _, ref := range after {
		keep[ref] = true
	}
	var moved []string
	for _, ref := range before {
		if keep[ref] {
			delete(keep, ref)
			continue
		}
		dropIf(owners, ref, owner)
		moved = append(moved, ref)
	}
	for ref := range keep {
		owners[ref] = owner
		moved = append(moved, ref)
	}
	return moved
}

// dropIf deletes key if it still has that value: within one update the new
// holder of a name may come before the old one goes.
func dropIf(m map[string]string, key, value string) {
	if m[key] == value {
		delete(m, key)
	}
}

func members(rows ...*portRow) []string {
	var all []string
	for _, r := range rows {
		if r != nil {
			all = append(all, r.Interfaces...)
		}
	}
	return all
}

// nameMembers adds the interfaces below the touched rows. It runs after the
// whole message is in, because the rows come in no order.
func (t *tables) nameMembers(c *changes) {
	for _, uuid := range c.uuids[:len(c.uuids):len(c.uuids)] {
		if p := t.port(uuid); p != nil {
			c.uuids = append(c.uuids, p.Interfaces...)
		}
	}
	for _, uuid := range c.uuids {
		if row := t.iface(uuid); row != nil {
			c.names[row.Name] = struct{}{}
		}
	}
}

func (t *tables) iface(uuid string) *ifaceRow {
	row, _ := t.rows[tableInterface][uuid].(*ifaceRow)
	return row
}

func (t *tables) port(uuid string) *portRow {
	row, _ := t.rows[tablePort][uuid].(*portRow)
	return row
}

// bridge finds a bridge by name; nil when there is none.
func (t *tables) bridge(name string) *bridgeRow {
	for _, row := range t.rows[tableBridge] {
		if b := row.(*bridgeRow); b.Name == name {
			return b
		}
	}
	return nil
}

// root is the one row of table Open_vSwitch; nil when the database was never
// initialised.
func (t *tables) root() *rootRow {
	for _, row := range t.rows[tableRoot] {
		return row.(*rootRow)
	}
	return nil
}

// found is one interface with the rows it hangs on.
type found struct {
	iface  *ifaceRow
	port   *portRow
	bridge *bridgeRow // nil: the port is on no bridge we know
}

// byGen finds an interface by the UUID of its row.
func (t *tables) byGen(uuid string) (found, bool) {
	f := found{iface: t.iface(uuid)}
	if f.iface == nil {
		return f, false
	}
	portUUID := t.portOf[uuid]
	if f.port = t.port(portUUID); f.port == nil {
		return f, false
	}
	f.bridge, _ = t.rows[tableBridge][t.bridgeOf[portUUID]].(*bridgeRow)
	return f, true
}

// all returns the interfaces of a bridge, sorted by name.
func (t *tables) all(b *bridgeRow) []found {
	fs := make([]found, 0, len(b.Ports))
	for _, p := range b.Ports {
		port := t.port(p)
		if port == nil {
			continue
		}
		for _, i := range port.Interfaces {
			if row := t.iface(i); row != nil {
				fs = append(fs, found{row, port, b})
			}
		}
	}
	slices.SortFunc(fs, func(a, b found) int { return compareNames(a.iface.Name, b.iface.Name) })
	return fs
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ids returns a copy of the port's external_ids.
func (f found) ids() map[string]string { return maps.Clone(f.port.ExternalIDs) }
