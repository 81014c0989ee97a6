package vswitch

import (
	"maps"
	"slices"

	"github.com/ovn-org/libovsdb/model"
)

// database is the name of the database that ovs-vswitchd serves.
const database = "Open_vSwitch"

// The tables and columns below are all that this package reads. Statistics and
// status columns are left out on purpose: ovs-vswitchd rewrites them every few
// seconds for every port. See ovs-vswitchd.conf.db(5) for their meaning.
const (
	tableRoot      = "Open_vSwitch"
	tableBridge    = "Bridge"
	tablePort      = "Port"
	tableInterface = "Interface"
)

type rootRow struct {
	UUID          string   `ovsdb:"_uuid"`
	Bridges       []string `ovsdb:"bridges"`
	OVSVersion    *string  `ovsdb:"ovs_version"`
	DBVersion     *string  `ovsdb:"db_version"`
	DatapathTypes []string `ovsdb:"datapath_types"`
}

type bridgeRow struct {
	UUID         string   `ovsdb:"_uuid"`
	Name         string   `ovsdb:"name"`
	Ports        []string `ovsdb:"ports"`
	DatapathType string   `ovsdb:"datapath_type"`
	DatapathID   *string  `ovsdb:"datapath_id"`
	FailMode     *string  `ovsdb:"fail_mode"`
	Protocols    []string `ovsdb:"protocols"`
}

type portRow struct {
	UUID        string            `ovsdb:"_uuid"`
	Name        string            `ovsdb:"name"`
	Interfaces  []string          `ovsdb:"interfaces"`
	ExternalIDs map[string]string `ovsdb:"external_ids"`
}

type ifaceRow struct {
	UUID   string  `ovsdb:"_uuid"`
	Name   string  `ovsdb:"name"`
	Type   string  `ovsdb:"type"`
	MAC    *string `ovsdb:"mac"`
	OFPort *int    `ovsdb:"ofport"`
	Error  *string `ovsdb:"error"`

	OFPortRequest *int `ovsdb:"ofport_request"`
	MTURequest    *int `ovsdb:"mtu_request"`

	Options map[string]string `ovsdb:"options"`
}

// clientModel ties the structs to their tables.
func clientModel() (model.ClientDBModel, error) {
	return model.NewClientDBModel(database, map[string]model.Model{
		tableRoot:      &rootRow{},
		tableBridge:    &bridgeRow{},
		tablePort:      &portRow{},
		tableInterface: &ifaceRow{},
	})
}

// The CloneModel pairs spare libovsdb a round trip through JSON for every
// changed row.

func (r *rootRow) CloneModel() model.Model { c := &rootRow{}; r.CloneModelInto(c); return c }
func (r *rootRow) CloneModelInto(m model.Model) {
	c := m.(*rootRow)
	*c = *r
	c.Bridges, c.DatapathTypes = slices.Clone(r.Bridges), slices.Clone(r.DatapathTypes)
	c.OVSVersion, c.DBVersion = clone(r.OVSVersion), clone(r.DBVersion)
}

func (r *bridgeRow) CloneModel() model.Model { c := &bridgeRow{}; r.CloneModelInto(c); return c }
func (r *bridgeRow) CloneModelInto(m model.Model) {
	c := m.(*bridgeRow)
	*c = *r
	c.Ports, c.Protocols = slices.Clone(r.Ports), slices.Clone(r.Protocols)
	c.DatapathID, c.FailMode = clone(r.DatapathID), clone(r.FailMode)
}

func (r *portRow) CloneModel() model.Model { c := &portRow{}; r.CloneModelInto(c); return c }
func (r *portRow) CloneModelInto(m model.Model) {
	c := m.(*portRow)
	*c = *r
	c.Interfaces, c.ExternalIDs = slices.Clone(r.Interfaces), maps.Clone(r.ExternalIDs)
}

func (r *ifaceRow) CloneModel() model.Model { c := &ifaceRow{}; r.CloneModelInto(c); return c }
func (r *ifaceRow) CloneModelInto(m model.Model) {
	c := m.(*ifaceRow)
	*c = *r
	c.MAC, c.OFPort, c.Error, c.Options = clone(r.MAC), clone(r.OFPort), clone(r.Error), maps.Clone(r.Options)
	c.OFPortRequest, c.MTURequest = clone(r.OFPortRequest), clone(r.MTURequest)
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// value is the pointed-to value, or the zero value for an empty optional column.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
