package agent

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/uplink"
	"github.com/antrea-lite/podnet/vswitch"
)

// uplinkState is where it is written what the node's device had before it was moved.
func uplinkState(conf *config.Config) string { return filepath.Join(conf.StateDir, "uplink.json") }

// NewUplink returns the client for the uplink's bridge, which does not run yet, and
// what moves the device with it; device names the device when no record does.
func NewUplink(conf *config.Config, device func() (string, error)) (*uplink.Mover, *vswitch.Client, error) {
	db := OVSDB(conf)
	db.Bridge, db.Datapath, db.Standalone = conf.Traffic.UplinkBridge, "netdev", true
	ovs, err := vswitch.New(db)
	if err != nil {
		return nil, nil, err
	}
	return uplink.New(uplink.Config{OVS: ovs, Bridge: conf.Traffic.UplinkBridge, State: uplinkState(conf), Period: time.Duration(conf.SyncPeriod), Device: device}), ovs, nil
}

// earlyParts are the parts that run before the Node is known. The device's mover
// does: until it has done its work the API server may be out of reach. A device
// that was moved is kept moved when it is no longer asked for, too; who turns that
// off restores the device.
func (a *agent) earlyParts() ([]hostPart, error) {
	if !a.conf.Traffic.PrepareUplink && !uplink.Recorded(uplinkState(a.conf)) {
		return nil, nil
	}
	mover, _, err := NewUplink(a.conf, func() (string, error) {
		select {
		case <-a.joined:
			return uplink.Holder(a.cluster.self.Addresses, a.conf.Traffic.UplinkBridge)
		default:
			return "", errors.New("the node's addresses are not known yet")
		}
	})
	if err != nil {
		return nil, err
	}
	return []hostPart{{name: "uplink", run: mover.Run, check: mover.Check, wake: mover.Wake}}, nil
}
