package agent

import (
	"errors"
	"fmt"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// Started implements cniserver.Gate.
func (a *agent) Started() error {
	if a.restored.Load() {
		return nil
	}
	for _, check := range []func() error{a.checkOVSDB, a.keeper.check} {
		if err := check(); err != nil {
			return fmt.Errorf("the interfaces of the bridge are not known yet: %w", err)
		}
	}
	return errors.New("the interfaces of the bridge are not known yet")
}

// Ready implements cniserver.Gate.
func (a *agent) Ready() *cniapi.Error { return a.health.Ready() }

// remedyOVS goes with every state of Open vSwitch that is not well.
const remedyOVS = "the agent goes on trying; see that ovsdb-server and ovs-vswitchd run and the endpoints are right"

func (a *agent) checkOVSDB() error {
	s := a.ovs.Status()
	return link(s.Connected, "OVSDB at "+a.conf.OVSDB, s.LastError)
}

func (a *agent) checkOpenFlow() error {
	s := a.of.Status()
	what := "OpenFlow at " + a.conf.OpenFlowEndpoint()
	if s.Connected && !s.Ready {
		return errors.New(what + " is connected, the replay of flows is not done yet")
	}
	return link(s.Ready, what, s.LastError)
}

func link(ok bool, what, lastError string) error {
	switch {
	case ok:
		return nil
	case lastError != "":
		return fmt.Errorf("%s is not connected: %s", what, lastError)
	}
	return fmt.Errorf("%s is not connected yet", what)
}
