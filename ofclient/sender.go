package ofclient

import (
	"context"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// Sender changes and reads the switch. *Client implements it for everyone
// and waits for a ready session until ctx ends; *Conn implements it for
// Config.Replay, on one session. All methods may be called concurrently.
type Sender interface {
	// Apply makes each group's changes, whole or not at all, one result per
	// group. The package documentation names the three outcomes. The groups
	// are read after Apply has returned early, too: do not change them.
	Apply(ctx context.Context, groups []Group) []error
	// Send sends messages outside bundles, followed by a barrier, and returns
	// the first error that the switch answered. It refuses *ofp.FlowMod: flow
	// changes written on a session that dies are applied all the same.
	Send(ctx context.Context, msgs ...ofp.Message) error
	// FlowStats returns the flows that match req.
	FlowStats(ctx context.Context, req ofp.FlowStatsRequest) ([]ofp.FlowStats, error)
	// Ports asks the switch for its ports now.
	Ports(ctx context.Context) ([]ofp.PortDesc, error)
}

// Group is a set of flow changes that are applied together or not at all, in
// their order. A group of more than 16384 changes is sent in parts; an error
// of a later part then wraps podnet.ErrOutcomeUnknown.
type Group struct {
	Name string // whose flows they are (the Pod), for error texts
	Mods []ofp.FlowMod
}
