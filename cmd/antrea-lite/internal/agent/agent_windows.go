package agent

import (
	"context"
	"errors"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
)

// Run says which parts exist on Windows.
func Run(context.Context, *config.Config, config.Node, string) error {
	return errors.New("the antrea-lite agent does not run on Windows yet: the OVSDB and OpenFlow clients, the pipeline and the CNI plugin do, " +
		"the HNS backend, the named pipe and the gateway are missing; embed package podnet, or run the agent on Linux")
}
