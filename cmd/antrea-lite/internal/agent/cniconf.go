package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
)

// confName sorts before most: the runtime takes the first file of the directory.
const confName = "10-antrea-lite.conflist"

// confPeriod is how often somebody looks whether the file is there.
const confPeriod = 2 * time.Second

// cniConf is the CNI configuration file that tells the container runtime to use
// the plugin. It is written once the agent is ready, so that the node's first
// Pods wait for it. It stays when the agent ends: the plugin then says "try again
// later", while a missing file would take the node out of service for every
// update of the agent.
type cniConf struct {
	dir     string
	content confList
}

// confList is the file. Stamp is ours; runtimes and plugins look over it.
type confList struct {
	CNIVersion  string           `json:"cniVersion"`
	CNIVersions []string         `json:"cniVersions"`
	Name        string           `json:"name"`
	Plugins     []map[string]any `json:"plugins"`
	Stamp       stamp            `json:"antrea-lite"`
}

// stamp tells for which boot and socket a file was written.
type stamp struct {
	Boot   string `json:"boot"`
	Socket string `json:"socket"`
}

func newCNIConf(conf *config.Config, boot string) *cniConf {
	plugin := map[string]any{
		"type": "antrea-lite-cni", "agentSocket": conf.CNISocket,
		"ipam":         map[string]any{"type": "antrea-lite"},
		"capabilities": capabilities(),
	}
	c := &cniConf{dir: conf.CNIConfDir, content: confList{
		// Runtimes before CNI 1.1 read cniVersion, later ones choose from the list.
		CNIVersion:  "1.0.0",
		CNIVersions: []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"},
		Name:        "antrea-lite",
		Plugins:     []map[string]any{plugin},
		Stamp:       stamp{boot, conf.CNISocket},
	}}
	if conf.Kubernetes.NodeName != "" {
		if grace := time.Duration(conf.Kubernetes.UnavailableAfter); grace > 0 {
			plugin["statusGraceSeconds"], plugin["readyFile"] = int(grace.Seconds()), readyFile(conf)
		}
		if hostPorts {
			// hostPort of Pods.
			c.content.Plugins = append(c.content.Plugins, map[string]any{"type": "portmap", "capabilities": map[string]any{"portMappings": true}})
		}
	}
	return c
}

func (c *cniConf) path() string { return filepath.Join(c.dir, confName) }

// removeOld takes away a file of an earlier boot or of an agent on another
// socket: until we are ready it would send Pods to a node that is not set up. A
// file of this boot stays, whatever else is in it.
func (c *cniConf) removeOld() error {
	if c.dir == "" {
		return nil
	}
	b, err := os.ReadFile(c.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var old confList
	if err == nil && json.Unmarshal(b, &old) == nil && old.Stamp == c.content.Stamp {
		return nil
	}
	if err == nil {
		err = os.Remove(c.path())
	}
	if err != nil {
		return fmt.Errorf("CNI configuration file: %w", err)
	}
	return nil
}

// install writes the file; a runtime that watches the directory never sees half of it.
func (c *cniConf) install() error {
	content, err := json.MarshalIndent(c.content, "", "  ")
	if err != nil {
		return fmt.Errorf("CNI configuration file: %w", err)
	}
	content = append(content, '\n')
	old, err := os.ReadFile(c.path())
	if err == nil && bytes.Equal(old, content) {
		return nil
	}
	err = os.MkdirAll(c.dir, 0o755)
	if err == nil {
		// Runtimes read *.conf, *.conflist and *.json only.
		temp := c.path() + ".tmp"
		err = os.WriteFile(temp, content, 0o644)
		if err == nil {
			err = os.Rename(temp, c.path())
		}
	}
	if err != nil {
		return fmt.Errorf("CNI configuration file: %w", err)
	}
	return nil
}

// restore writes the file if there is none.
func (c *cniConf) restore(ctx context.Context) error {
	if _, err := os.Lstat(c.path()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	klog.FromContext(ctx).Info("Somebody removed the CNI configuration file; writing it again", "path", c.path())
	return c.install()
}
