package uplink

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// tableName is our table; `nft list table netdev antrea-lite-uplink` shows it.
const tableName = "antrea-lite-uplink"

// Open vSwitch reads a copy of what the device receives. The kernel would take the
// original, too: every packet for the node would arrive twice, and what is for
// others be routed. The table drops the originals, behind the copy.

// deafen makes the kernel ignore what the device receives.
func deafen(device string) error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyNetdev, Name: tableName}
	conn.AddTable(table)
	conn.DelTable(table)
	conn.AddTable(table)
	drop := nftables.ChainPolicyDrop
	conn.AddChain(&nftables.Chain{Name: "ingress", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookIngress,
		Priority: nftables.ChainPriorityFilter, Device: device, Policy: &drop})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables: table netdev %s: %w: the kernel needs nf_tables and its ingress hook", tableName, err)
	}
	return nil
}

// undeafen lets the kernel listen again.
func undeafen() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	conn.DelTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: tableName})
	if err := conn.Flush(); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("nftables: remove table netdev %s: %w", tableName, err)
	}
	return nil
}

// deaf tells whether the kernel ignores what the device receives. A chain goes
// with its device.
func deaf() (bool, error) {
	conn, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("nftables: %w", err)
	}
	chains, err := conn.ListChainsOfTableFamily(nftables.TableFamilyNetdev)
	if err != nil {
		return false, fmt.Errorf("nftables: %w", err)
	}
	for _, c := range chains {
		if c.Table.Name == tableName {
			return true, nil
		}
	}
	return false, nil
}
