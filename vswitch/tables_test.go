package vswitch

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testSchema has the columns of the models with the types of the real one.
const testSchema = `{"name":"Open_vSwitch","version":"8.0.0","tables":{
"Open_vSwitch":{"columns":{
  "bridges":{"type":{"key":{"type":"uuid","refTable":"Bridge"},"min":0,"max":"unlimited"}},
  "ovs_version":{"type":{"key":"string","min":0,"max":1}},"db_version":{"type":{"key":"string","min":0,"max":1}},
  "datapath_types":{"type":{"key":"string","min":0,"max":"unlimited"}}}},
"Bridge":{"columns":{"name":{"type":"string","mutable":false},"datapath_type":{"type":"string"},
  "ports":{"type":{"key":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}},
  "datapath_id":{"type":{"key":"string","min":0,"max":1}},
  "fail_mode":{"type":{"key":{"type":"string","enum":["set",["standalone","secure"]]},"min":0,"max":1}},
  "protocols":{"type":{"key":{"type":"string","enum":["set",["OpenFlow10","OpenFlow13","OpenFlow15"]]},"min":0,"max":"unlimited"}}}},
"Port":{"columns":{"name":{"type":"string","mutable":false},
  "interfaces":{"type":{"key":{"type":"uuid","refTable":"Interface"},"min":1,"max":"unlimited"}},
  "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
"Interface":{"columns":{"name":{"type":"string","mutable":false},"type":{"type":"string"},
  "mac":{"type":{"key":"string","min":0,"max":1}},"ofport":{"type":{"key":"integer","min":0,"max":1}},
  "error":{"type":{"key":"string","min":0,"max":1}},
  "ofport_request":{"type":{"key":"integer","min":0,"max":1}},"mtu_request":{"type":{"key":"integer","min":0,"max":1}},
  "options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}`

func testTables(tb testing.TB) *tables {
	tb.Helper()
	m, err := matchSchema(json.RawMessage(testSchema))
	if err != nil {
		tb.Fatal(err)
	}
	return newTables(m)
}

func id(n int) string { return fmt.Sprintf("00000000-0000-0000-0000-%012d", n) }

// dump is a bridge with n ports: Port UUIDs 1000+i, Interface UUIDs 2000+i.
func dump(n int) string {
	var ports, ifaces, refs []string
	for i := range n {
		refs = append(refs, fmt.Sprintf(`["uuid",%q]`, id(1000+i)))
		ports = append(ports, fmt.Sprintf(`%q:{"initial":{"name":"p%d","interfaces":["uuid",%q],"external_ids":["map",[["podnet-owner","x"],["container-id","c%d"]]]}}`, id(1000+i), i, id(2000+i), i))
		ifaces = append(ifaces, fmt.Sprintf(`%q:{"initial":{"name":"p%d","type":"","ofport":%d,"mac":["set",[]],"error":["set",[]]}}`, id(2000+i), i, i+1))
	}
	return fmt.Sprintf(`{"Bridge":{%q:{"initial":{"name":"br0","datapath_type":"netdev","ports":["set",[%s]]}}},"Port":{%s},"Interface":{%s}}`,
		id(1), strings.Join(refs, ","), strings.Join(ports, ","), strings.Join(ifaces, ","))
}

func apply(tb testing.TB, t *tables, raw string) changes {
	tb.Helper()
	c, err := t.apply(json.RawMessage(raw))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func TestTablesFollowUpdates(t *testing.T) {
	ts := testTables(t)
	apply(t, ts, dump(2))
	names := func(c changes) string {
		var s []string
		for n := range c.names {
			s = append(s, n)
		}
		return strings.Join(s, " ")
	}
	// A number is taken away, and given.
	if got := names(apply(t, ts, `{"Interface":{"`+id(2000)+`":{"modify":{"ofport":["set",[]],"error":"gone"}}}}`)); got != "p0" {
		t.Errorf("names %q", got)
	}
	if f, ok := ts.byGen(id(2000)); !ok || f.iface.OFPort != nil || value(f.iface.Error) != "gone" || f.bridge.Name != "br0" {
		t.Errorf("%+v", f)
	}
	apply(t, ts, `{"Interface":{"`+id(2000)+`":{"modify":{"ofport":-1}}}}`)
	if f, _ := ts.byGen(id(2000)); value(f.iface.OFPort) != -1 {
		t.Errorf("ofport %v", f.iface.OFPort)
	}
	// external_ids change by difference.
	apply(t, ts, `{"Port":{"`+id(1000)+`":{"modify":{"external_ids":["map",[["container-id","new"],["podnet-owner","x"],["extra","1"]]]}}}}`)
	f, _ := ts.byGen(id(2000))
	if diff := cmp.Diff(map[string]string{"container-id": "new", "extra": "1"}, f.port.ExternalIDs); diff != "" {
		t.Error(diff)
	}
	// The same name in another row, in one message.
	apply(t, ts, `{"Bridge":{"`+id(1)+`":{"modify":{"ports":["set",[["uuid","`+id(1001)+`"],["uuid","`+id(1009)+`"]]]}}},
		"Port":{"`+id(1001)+`":{"delete":null},"`+id(1009)+`":{"insert":{"name":"p1","interfaces":["uuid","`+id(2009)+`"]}}},
		"Interface":{"`+id(2001)+`":{"delete":null},"`+id(2009)+`":{"insert":{"name":"p1"}}}}`)
	if ts.byName["p1"] != id(2009) || ts.portName["p1"] != id(1009) || ts.bridgeOf[id(1001)] != "" || ts.portOf[id(2001)] != "" {
		t.Errorf("second life: %q %q", ts.byName["p1"], ts.portName["p1"])
	}
	if all := ts.all(ts.bridge("br0")); len(all) != 2 || all[1].iface.UUID != id(2009) {
		t.Errorf("%d ports", len(all))
	}
}

// Random histories: the look-ups are always what a scan of the rows gives.
func TestLookUpsEqualTheRows(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	ts := testTables(t)
	apply(t, ts, dump(0))
	live := map[int]bool{}
	for range 300 {
		n := rng.IntN(40)
		kind := "insert"
		port := fmt.Sprintf(`{"insert":{"name":"p%d","interfaces":["uuid",%q]}}`, n%20, id(2000+n))
		iface := fmt.Sprintf(`{"insert":{"name":"p%d"}}`, n%20)
		if live[n] {
			kind, port, iface = "delete", `{"delete":null}`, `{"delete":null}`
		} else if live[(n+20)%40] {
			continue // the name is taken
		}
		live[n] = kind == "insert"
		apply(t, ts, fmt.Sprintf(`{"Interface":{%q:%s},"Port":{%q:%s},"Bridge":{%q:{"modify":{"ports":["uuid",%q]}}}}`, id(2000+n), iface, id(1000+n), port, id(1), id(1000+n)))
		fresh := testTables(t)
		for table, rows := range ts.rows {
			for uuid, row := range rows {
				fresh.replace(table, uuid, nil, row, &changes{names: map[string]struct{}{}})
			}
		}
		for _, d := range []string{cmp.Diff(fresh.byName, ts.byName), cmp.Diff(fresh.portOf, ts.portOf), cmp.Diff(fresh.bridgeOf, ts.bridgeOf), cmp.Diff(fresh.portName, ts.portName)} {
			if d != "" {
				t.Fatal(d)
			}
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add(dump(3))
	f.Add(`{"Interface":{"` + id(2000) + `":{"modify":{"ofport":["set",[]],"error":"x"}}}}`)
	f.Add(`{"Bridge":{"` + id(1) + `":{"modify":{"ports":["set",[["uuid"]]]}}}}`)
	f.Add(`{"Port":{"` + id(1000) + `":{"modify":{"external_ids":["map",[["a"]]]}}}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		ts := testTables(t)
		apply(t, ts, dump(3))
		if _, err := ts.apply(json.RawMessage(raw)); err != nil {
			return
		}
		if b := ts.bridge("br0"); b != nil {
			ts.all(b)
		}
	})
}

// DB-16: one number among 1000 ports, and one port more on a bridge of 1000.
func BenchmarkApply(b *testing.B) {
	b.Run("number", func(b *testing.B) {
		ts := testTables(b)
		apply(b, ts, dump(1000))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			apply(b, ts, fmt.Sprintf(`{"Interface":{%q:{"modify":{"ofport":%d}}}}`, id(2000+i%1000), i+1))
		}
	})
	b.Run("port", func(b *testing.B) {
		ts := testTables(b)
		apply(b, ts, dump(1000))
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			verb := fmt.Sprintf(`{"insert":{"name":"x","interfaces":["uuid",%q]}}`, id(9001))
			if i%2 == 1 {
				verb = `{"delete":null}`
			}
			apply(b, ts, fmt.Sprintf(`{"Port":{%q:%s},"Bridge":{%q:{"modify":{"ports":["uuid",%q]}}}}`, id(9000), verb, id(1), id(9000)))
		}
	})
	b.Run("dump1000", func(b *testing.B) {
		raw := dump(1000)
		b.ReportAllocs()
		for b.Loop() {
			apply(b, testTables(b), raw)
		}
	})
}
