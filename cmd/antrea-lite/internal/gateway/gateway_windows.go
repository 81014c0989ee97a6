package gateway

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// watchPeriod is how often Watch looks. Windows can call back, but a callback
// made by Go is never freed; and looking costs less than a millisecond.
const watchPeriod = 5 * time.Second

// Apply compares the interface with the configuration and changes nothing: on
// Windows the host's own interfaces are their operator's business
// (docs/windows.md). What differs is the error.
func Apply(conf Config) (state State, changed []string, err error) {
	state, err = Look(conf.Name)
	if err != nil {
		return State{}, nil, err
	}
	var wrong []string
	if !state.Up {
		wrong = append(wrong, "it is down")
	}
	if state.MTU != conf.MTU {
		wrong = append(wrong, fmt.Sprintf("its MTU is %d, configured is %d", state.MTU, conf.MTU))
	}
	for _, p := range conf.Addresses {
		if !slices.Contains(state.Addresses, p) {
			wrong = append(wrong, "it lacks "+p.String())
		}
	}
	if wrong != nil {
		return state, nil, fmt.Errorf("gateway interface %s: %s: docs/windows.md says how to set it", conf.Name, strings.Join(wrong, ", "))
	}
	return state, nil, nil
}

// NewMAC returns none: the adapter has its own.
func NewMAC() ifstore.MAC { return ifstore.MAC{} }

// Look returns the interface as it is.
func Look(name string) (State, error) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return State{}, fmt.Errorf("gateway interface %s: %w: docs/windows.md says how to make it", name, err)
	}
	s := State{MTU: i.MTU, Up: i.Flags&net.FlagUp != 0}
	copy(s.MAC[:], i.HardwareAddr)
	addrs, err := i.Addrs()
	if err != nil {
		return s, fmt.Errorf("gateway interface %s: %w", name, err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok {
			ip, _ := netip.AddrFromSlice(n.IP)
			ones, _ := n.Mask.Size()
			s.Addresses = append(s.Addresses, netip.PrefixFrom(ip.Unmap(), ones))
		}
	}
	return s, nil
}

// Watch calls changed whenever the interface differs from what it was a moment
// ago, until ctx ends.
func Watch(ctx context.Context, name string, changed func()) error {
	tick := time.NewTicker(watchPeriod)
	defer tick.Stop()
	last, lastErr := Look(name)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := Look(name)
		if (err == nil) != (lastErr == nil) || !reflect.DeepEqual(now, last) {
			changed()
		}
		last, lastErr = now, err
	}
}
