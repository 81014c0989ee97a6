package vswitch

import (
	"context"
	"errors"
)

// Info is what Open vSwitch says about itself. Each text may be empty: others write it.
type Info struct {
	OVSVersion    string   // of ovs-vswitchd, as the start script recorded it
	DBVersion     string   // of the schema, as the start script recorded it
	DBSchema      string   // of the schema that ovsdb-server serves
	DatapathTypes []string // that ovs-vswitchd can make
}

// Info returns what Open vSwitch says about itself. It waits for a current view.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.await(ctx, "", func(t *tables) (bool, error) {
		r := t.root()
		if r == nil {
			return false, errors.New("the Open vSwitch database is empty: start ovs-vswitchd with ovs-ctl, or run ovs-vsctl init")
		}
		info = Info{
			OVSVersion: value(r.OVSVersion), DBVersion: value(r.DBVersion), DBSchema: t.model.Schema.Version,
			DatapathTypes: append([]string(nil), r.DatapathTypes...),
		}
		return true, nil
	})
	return info, err
}
