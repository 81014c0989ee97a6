package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// confName sorts before most: the runtime takes the first file of the directory.
const confName = "10-antrea-lite.conflist"

// cniConf is the CNI configuration file that tells the container runtime to use
// the plugin. It is written once the agent is ready, so that the node's first
// Pods wait for it. It stays when the agent ends: the plugin then says "try again
// later", while a missing file would take the node out of service for every
// update of the agent.
type cniConf struct {
	dir     string
	content []byte
}

func newCNIConf(dir, socket string) (*cniConf, error) {
	type object map[string]any
	content, err := json.MarshalIndent(object{
		// Runtimes before CNI 1.1 read cniVersion, later ones choose from the list.
		"cniVersion":  "1.0.0",
		"cniVersions": []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"},
		"name":        "antrea-lite",
		"plugins": []object{{
			"type": "antrea-lite-cni", "agentSocket": socket,
			"ipam":         object{"type": "antrea-lite"},
			"capabilities": object{"ips": true, "mac": true},
		}},
	}, "", "  ")
	return &cniConf{dir: dir, content: append(content, '\n')}, err
}

func (c *cniConf) path() string { return filepath.Join(c.dir, confName) }

// removeOther takes away a file that an agent with other settings left: until we
// are ready it would send Pods to the wrong socket.
func (c *cniConf) removeOther() error {
	old, err := os.ReadFile(c.path())
	if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(old, c.content) {
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
	old, err := os.ReadFile(c.path())
	if err == nil && bytes.Equal(old, c.content) {
		return nil
	}
	err = os.MkdirAll(c.dir, 0o755)
	if err == nil {
		// Runtimes read *.conf, *.conflist and *.json only.
		temp := c.path() + ".tmp"
		err = os.WriteFile(temp, c.content, 0o644)
		if err == nil {
			err = os.Rename(temp, c.path())
		}
	}
	if err != nil {
		return fmt.Errorf("CNI configuration file: %w", err)
	}
	return nil
}
