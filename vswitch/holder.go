package vswitch

import "context"

// InternalPortOf returns the bridge that provides a netdev, "" when the netdev
// is none that Open vSwitch makes (Interface.type internal). It waits for a
// current view.
func (c *Client) InternalPortOf(ctx context.Context, name string) (bridge string, err error) {
	err = c.await(ctx, "", func(t *tables) (bool, error) {
		if f, ok := t.byGen(t.byName[name]); ok && f.bridge != nil && f.iface.Type == "internal" {
			bridge = f.bridge.Name
		}
		return true, nil
	})
	return bridge, err
}

// BridgeOf returns the bridge on which an interface of that name is configured,
// whatever its type and whether or not it could be opened; "" when it is on
// none. It waits for a current view.
func (c *Client) BridgeOf(ctx context.Context, name string) (bridge string, err error) {
	err = c.await(ctx, "", func(t *tables) (bool, error) {
		if f, ok := t.byGen(t.byName[name]); ok && f.bridge != nil {
			bridge = f.bridge.Name
		}
		return true, nil
	})
	return bridge, err
}
