package masquerade

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// TableName is our nftables table; `nft list table inet antrea-lite` shows it.
const TableName = "antrea-lite"

// Config says what is translated.
type Config struct {
	// Own are the ranges of this node's Pods: their packets are translated,
	Own []netip.Prefix
	// unless they go to Inside, the ranges of all Pods of the cluster, Own among them,
	Inside []netip.Prefix
	// or leave by the gateway, back to a Pod.
	Gateway string
}

// Apply makes the table as conf says, in one transaction: packets meet the old
// rules or the new ones. Connections that are translated already go on.
func Apply(conf Config) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: TableName}
	// Deleting what is not there is an error, and adding what is there is none.
	conn.AddTable(table)
	conn.DelTable(table)
	table = conn.AddTable(table)
	chain := conn.AddChain(&nftables.Chain{Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	for _, f := range families {
		if err := f.add(conn, table, chain, conf); err != nil {
			return err
		}
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables: table inet %s: %w: the kernel needs nf_tables and nft_masq", TableName, err)
	}
	return nil
}

// Remove removes the table. None there: nil.
func Remove() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	conn.DelTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: TableName})
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("nftables: remove table inet %s: %w", TableName, err)
	}
	return nil
}

// Present reports whether the table is there: others flush all rules now and then.
func Present() (bool, error) {
	conn, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("nftables: %w", err)
	}
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, fmt.Errorf("nftables: %w", err)
	}
	for _, c := range chains {
		if c.Table.Name != TableName {
			continue
		}
		rules, err := conn.GetRules(c.Table, c)
		if err != nil {
			return false, fmt.Errorf("nftables: %w", err)
		}
		return len(rules) > 0, nil
	}
	return false, nil
}

// family is what differs between IPv4 and IPv6.
type family struct {
	suffix   string
	proto    byte
	key      nftables.SetDatatype
	src, dst uint32 // offsets in the network header
	bytes    uint32
	is       func(netip.Addr) bool
}

var families = [...]family{
	{suffix: "4", proto: unix.NFPROTO_IPV4, key: nftables.TypeIPAddr, src: 12, dst: 16, bytes: 4, is: netip.Addr.Is4},
	{suffix: "6", proto: unix.NFPROTO_IPV6, key: nftables.TypeIP6Addr, src: 8, dst: 24, bytes: 16, is: netip.Addr.Is6},
}

func (f family) add(conn *nftables.Conn, table *nftables.Table, chain *nftables.Chain, conf Config) error {
	own, inside := f.of(conf.Own), f.of(conf.Inside)
	if len(own) == 0 {
		return nil
	}
	ownSet, err := f.set(conn, table, "own", own)
	if err != nil {
		return err
	}
	insideSet, err := f.set(conn, table, "inside", inside)
	if err != nil {
		return err
	}
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{f.proto}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.src, Len: f.bytes},
		&expr.Lookup{SourceRegister: 1, SetName: ownSet.Name, SetID: ownSet.ID},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: f.dst, Len: f.bytes},
		&expr.Lookup{SourceRegister: 1, SetName: insideSet.Name, SetID: insideSet.ID, Invert: true},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: ifName(conf.Gateway)},
		&expr.Counter{},
		// A new port each time keeps two Pods that chose the same one apart without a search.
		&expr.Masq{FullyRandom: true},
	}})
	return nil
}

func (f family) of(list []netip.Prefix) (out []netip.Prefix) {
	for _, p := range list {
		if f.is(p.Addr()) {
			out = append(out, p.Masked())
		}
	}
	return out
}

// set makes a set of ranges. nftables takes no overlaps, so that of two ranges
// one within the other the smaller is left out.
func (f family) set(conn *nftables.Conn, table *nftables.Table, name string, ranges []netip.Prefix) (*nftables.Set, error) {
	set := &nftables.Set{Table: table, Name: name + f.suffix, KeyType: f.key, Interval: true, KeyByteOrder: binaryutil.BigEndian}
	slices.SortFunc(ranges, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	var elements []nftables.SetElement
	var last netip.Prefix
	for _, p := range ranges {
		if last.IsValid() && last.Overlaps(p) {
			continue
		}
		last = p
		elements = append(elements, nftables.SetElement{Key: p.Addr().AsSlice()})
		if after := after(p); after.IsValid() {
			elements = append(elements, nftables.SetElement{Key: after.AsSlice(), IntervalEnd: true})
		}
	}
	if err := conn.AddSet(set, elements); err != nil {
		return nil, fmt.Errorf("nftables: set %s: %w", set.Name, err)
	}
	return set, nil
}

// after returns the first address behind a range, the zero Addr when the range ends the space.
func after(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last.Next()
}

// ifName is an interface name as the kernel compares it: with all its zeros.
func ifName(name string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, name)
	return b
}
