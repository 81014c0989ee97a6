package vswitch

import (
	"context"
	"time"

	"github.com/antrea-lite/podnet/podnet"
)

// nudgedID is the external_ids key that Nudge rewrites.
const nudgedID = "podnet-nudged"

// Nudge makes ovs-vswitchd try again to open a port's device, for an error that
// stands although its cause is gone: on any change of its configuration
// ovs-vswitchd looks at every port again. The change is the time of the nudge in the
// port's external_ids. Callers pace it; it is never sent by itself.
func (c *Client) Nudge(ctx context.Context, key podnet.PortKey) error {
	return c.SetExternalIDs(ctx, key, map[string]string{nudgedID: time.Now().UTC().Format(time.RFC3339Nano)})
}
