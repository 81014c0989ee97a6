package vswitch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"

	"github.com/ovn-org/libovsdb/model"
	"github.com/ovn-org/libovsdb/ovsdb"
)

// monitorID marks our monitor's updates.
const monitorID = "podnet"

// session is one connection, from the schema over the first dump to its end.
type session struct {
	client *Client
	rpc    *rpc

	// Used on the reader only.
	early  []json.RawMessage // updates that came before the dump
	dumped bool
}

func newSession(c *Client, conn net.Conn) *session {
	s := &session{client: c}
	s.rpc = newRPC(conn, c.cfg.ProbeInterval)
	s.rpc.notify = s.notified
	s.rpc.gone = func() { c.disconnected(s) }
	return s
}

// handshake reads the schema, checks it and starts the monitor. When it
// returns nil, the session is the client's current one. A large database may
// take its time to dump, hence the limit of two answers for the whole.
func (s *session) handshake(ctx context.Context) error {
	limit := 2 * s.client.cfg.AnswerTimeout
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the OVSDB server did not set up the connection in %v", limit))
	defer cancel()
	// Without it the server hangs up whenever any of its databases changes
	// (ovsdb-server(7), 4.1.17). Servers before 2.9 do not know it.
	if _, err := s.rpc.call(ctx, "set_db_change_aware", []any{true}, nil); err != nil {
		if re := (*rpcError)(nil); !errors.As(err, &re) {
			return err
		}
	}
	raw, err := s.rpc.call(ctx, "get_schema", []any{database}, nil)
	if err != nil {
		return err
	}
	m, err := matchSchema(raw)
	if err != nil {
		return err
	}
	requests := map[string][]ovsdb.MonitorRequest{}
	for table, typ := range m.Types() {
		requests[table] = []ovsdb.MonitorRequest{{Columns: columns(typ)}}
	}
	_, err = s.rpc.call(ctx, "monitor_cond", []any{database, monitorID, requests}, func(dump json.RawMessage) error {
		return s.dump(newTables(m), dump)
	})
	if err != nil {
		return fmt.Errorf("monitor OVSDB: %w", err)
	}
	return nil
}

// matchSchema checks that the server's schema has every column we read.
func matchSchema(raw json.RawMessage) (model.DatabaseModel, error) {
	var schema ovsdb.DatabaseSchema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return model.DatabaseModel{}, fmt.Errorf("OVSDB schema is malformed: %w", err)
	}
	cm, err := clientModel()
	if err != nil {
		return model.DatabaseModel{}, err
	}
	var missing []string
	for table, typ := range model.NewPartialDatabaseModel(cm).Types() {
		for _, column := range columns(typ) {
			if ts := schema.Table(table); ts == nil || ts.Column(column) == nil {
				missing = append(missing, table+"."+column)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return model.DatabaseModel{}, fmt.Errorf("this Open vSwitch is too old: its database schema %s has no %s; Open vSwitch 2.13 or newer is needed, also on disk (ovsdb-tool convert)",
			schema.Version, strings.Join(missing, ", "))
	}
	m, errs := model.NewDatabaseModel(schema, cm)
	if len(errs) > 0 {
		return m, fmt.Errorf("OVSDB schema %s does not fit: %w", schema.Version, errors.Join(errs...))
	}
	return m, nil
}

// columns lists the columns of a model type, without the UUID.
func columns(typ reflect.Type) []string {
	var names []string
	for i := range typ.Elem().NumField() {
		if name := typ.Elem().Field(i).Tag.Get("ovsdb"); name != "_uuid" {
			names = append(names, name)
		}
	}
	return names
}

// dump takes the first dump and whatever came too early. It runs on the reader.
func (s *session) dump(t *tables, dump json.RawMessage) error {
	for _, raw := range append([]json.RawMessage{dump}, s.early...) {
		if _, err := t.apply(raw); err != nil {
			return err
		}
	}
	s.early, s.dumped = nil, true
	s.client.connected(s, t)
	return nil
}

// notified handles a notification. It runs on the reader.
func (s *session) notified(method string, params json.RawMessage) error {
	switch method {
	case "update2":
		var p []json.RawMessage
		if err := json.Unmarshal(params, &p); err != nil || len(p) != 2 {
			return fmt.Errorf("update2 from OVSDB is malformed: %d parameters", len(p))
		}
		var id string
		if json.Unmarshal(p[0], &id) != nil || id != monitorID {
			return nil
		}
		if !s.dumped {
			s.early = append(s.early, p[1])
			return nil
		}
		return s.client.updated(s, p[1])
	case "monitor_canceled":
		return errors.New("the OVSDB server ended the monitor: its schema changed")
	}
	return nil
}
