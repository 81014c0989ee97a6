// Package hostif lists the network interfaces of a Windows node, those of Pods
// included, and sets their MTU.
//
// The vNIC of a Pod is in the network compartment of its container, where
// package net does not look: net.Interfaces asks for the compartment of the
// process only. List asks for all of them.
//
// An Adapter is plain data on any system, so that whatever uses a list is
// tested anywhere; List and MTUSetter need Windows.
package hostif

import (
	"context"
	"fmt"

	"github.com/antrea-lite/podnet/ifstore"
)

// Adapter is one network interface, as it was when it was listed.
type Adapter struct {
	Alias       string // what Windows shows: "vEthernet (NAME)" for the vNIC of endpoint NAME
	Description string // of the driver: "Hyper-V Virtual Ethernet Adapter #3"
	GUID        string // "{...}", as Windows writes it
	Index       uint32 // 1 and up; another interface may get it once this one has gone
	LUID        uint64 // 0 when Windows gave none
	Compartment uint32 // 1 is the host's own; 0 when Windows gave none
	MTU         int    // bytes; 0: without a limit
	MAC         ifstore.MAC
	Up          bool // operational status; not to be relied on for a vNIC whose port Open vSwitch has not opened yet
}

// Alias returns the name that Windows gives to the host interface of the HNS
// endpoint of that name.
func Alias(endpoint string) string { return fmt.Sprintf("vEthernet (%s)", endpoint) }

// Names makes a list of names, as async.NewAppearance wants it, from a list of
// adapters.
func Names(list func(context.Context) ([]Adapter, error)) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		adapters, err := list(ctx)
		if err != nil {
			return nil, err
		}
		names := make([]string, len(adapters))
		for i, a := range adapters {
			names[i] = a.Alias
		}
		return names, nil
	}
}

// Find returns the adapter of that alias.
func Find(adapters []Adapter, alias string) (Adapter, bool) {
	for _, a := range adapters {
		if a.Alias == alias {
			return a, true
		}
	}
	return Adapter{}, false
}
