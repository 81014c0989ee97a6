package prepare

import (
	"context"
	"fmt"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
)

// Wiring tells whether the host is reached through Open vSwitch once that alone
// forwards on the switch of an uplink.
type Wiring struct {
	// Bridge returns the bridge of Open vSwitch that has a port of that name; "": none.
	Bridge func(ctx context.Context, port string) (string, error)
	// Adapters lists the host's adapters.
	Adapters func(ctx context.Context) ([]hostif.Adapter, error)
}

// Look tells whether the uplink is a port of a bridge and the host has an
// adapter of that bridge's name, which is how Open vSwitch finds the host's end.
// Both are an operator's work (docs/windows.md).
func (w Wiring) Look(ctx context.Context, uplink string) (ok bool, found string, err error) {
	bridge, err := w.Bridge(ctx, uplink)
	if err != nil {
		return false, "", fmt.Errorf("ask Open vSwitch which bridge has uplink %q: %w", uplink, err)
	}
	switch bridge {
	case "":
		return false, fmt.Sprintf("%q is a port of no bridge", uplink), nil
	case uplink:
		return false, fmt.Sprintf("%q is the host's own end of a bridge and no uplink: name the adapter under it (--hns-uplink)", uplink), nil
	}
	adapters, err := w.Adapters(ctx)
	if err != nil {
		return false, "", err
	}
	if _, ok := hostif.Find(adapters, bridge); !ok {
		return false, fmt.Sprintf("%q is a port of bridge %s, and the host has no adapter called %s", uplink, bridge, bridge), nil
	}
	return true, fmt.Sprintf("%q is a port of bridge %s", uplink, bridge), nil
}
