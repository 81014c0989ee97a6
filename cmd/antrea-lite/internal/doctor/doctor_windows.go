package doctor

import (
	"context"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
)

// Check looks at the configuration only: the agent does not run on Windows yet.
func Check(_ context.Context, _ *config.Config, loadErr error) []api.Finding {
	f := api.Finding{Level: api.Warn, What: "agent", Found: "does not run on Windows yet", Remedy: "run it on Linux"}
	if loadErr != nil {
		return []api.Finding{{Level: api.Fail, What: "configuration", Found: loadErr.Error()}, f}
	}
	return []api.Finding{f}
}
