package uplink

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
)

// Record is what a device has, or had before it was moved.
type Record struct {
	Device    string
	Bridge    string // where it was to be moved to
	MAC       string
	MTU       int
	GRO       bool // whether generic receive offload was on
	Addresses []Address
	Routes    []Route
}

// Address is an address of the node.
type Address struct {
	Prefix netip.Prefix
	Peer   netip.Prefix `json:",omitzero"` // the other end of a point-to-point link
	Scope  int
}

// Route is a route that leads through the device.
type Route struct {
	Dst      netip.Prefix // of length 0: the default route
	Gateway  netip.Addr   `json:",omitzero"`
	Source   netip.Addr   `json:",omitzero"`
	Metric   int
	Table    int
	Scope    int
	Protocol int
	MTU      int
	OnLink   bool
}

// key tells routes apart that may stand beside each other.
func (r Route) key() Route { return Route{Dst: r.Dst, Metric: r.Metric, Table: r.Table} }

// merge adds what a device has now to what it had: after a crash it may have only
// a part, and somebody such as a DHCP client may have given it something new. It
// reports whether anything was new. A route of now replaces that of the same key.
func (r *Record) merge(now Record) (news bool) {
	for _, a := range now.Addresses {
		if !slices.Contains(r.Addresses, a) {
			r.Addresses, news = append(r.Addresses, a), true
		}
	}
	for _, route := range now.Routes {
		i := slices.IndexFunc(r.Routes, func(have Route) bool { return have.key() == route.key() })
		switch {
		case i < 0:
			r.Routes, news = append(r.Routes, route), true
		case r.Routes[i] != route:
			r.Routes[i], news = route, true
		}
	}
	return news
}

// load reads a record; none there: not ok.
func load(path string) (r Record, ok bool, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return r, false, fmt.Errorf("record of the uplink: %s: %w: move the addresses back by hand and remove the file", path, err)
	}
	return r, true, nil
}

// save writes a record, whole or not at all, and waits for the disk: what follows
// takes the addresses away from where they can be read.
func (r Record) save(path string) (err error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = writeSynced(path+".tmp", b)
	}
	if err == nil {
		err = os.Rename(path+".tmp", path)
	}
	if err != nil {
		return fmt.Errorf("record of the uplink: %w", err)
	}
	return nil
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
