package agent

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
)

// readyPeriod is how often the ready file is touched. It is far below any grace.
const readyPeriod = 2 * time.Second

// readyFile's time of change is the last moment at which an ADD could be served.
// The plugin looks at it when it is asked for STATUS, also while there is no
// agent: a NotReady node loses its place in Services, and neither a restart of
// the agent nor one of Open vSwitch is a reason for that.
func readyFile(conf *config.Config) string { return filepath.Join(conf.StateDir, "ready") }

// touchReady keeps the ready file until ctx ends.
func (a *agent) touchReady(ctx context.Context) error {
	path := readyFile(a.conf)
	tick := time.NewTicker(readyPeriod)
	defer tick.Stop()
	for {
		if a.health.Ready() == nil {
			now := time.Now()
			err := os.Chtimes(path, now, now)
			if os.IsNotExist(err) {
				err = os.WriteFile(path, nil, 0o644)
			}
			if err != nil {
				return fmt.Errorf("ready file: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// bootStamp tells one life of the node's containers from another: by the
// kernel's boot, and by a word in the state directory, which dies with the boot
// also where the machine below goes on (a node that is itself a container).
func bootStamp(conf *config.Config) (string, error) {
	path, boot := filepath.Join(conf.StateDir, "boot"), bootID()
	b, err := os.ReadFile(path)
	if err == nil && strings.HasPrefix(string(b), boot+"/") {
		return string(b), nil
	}
	if err != nil && !os.IsNotExist(err) {
		return "", fmt.Errorf("state directory: %w", err)
	}
	stamp := boot + "/" + rand.Text()
	if err := os.MkdirAll(conf.StateDir, 0o755); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	if err := os.WriteFile(path, []byte(stamp), 0o644); err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return stamp, nil
}
