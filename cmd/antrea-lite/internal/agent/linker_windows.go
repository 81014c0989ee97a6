package agent

import (
	"errors"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// osLinker is the platform's backend; podnet looks for more than podnet.Linker in it.
type osLinker struct{ podnet.Linker }

var errNoBackend = errors.New("the antrea-lite agent does not run on Windows yet: the HNS backend is missing; embed package podnet, or run the agent on Linux")

func newLinker(*config.Config) (nodeLinker, error) { return nodeLinker{}, errNoBackend }

func (a *agent) readiness(nodeLinker, *ifstore.Store) (podnet.PortReadiness, error) {
	return nil, errNoBackend
}
