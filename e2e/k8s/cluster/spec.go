package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// spec tells a process 1 what its namespaces look like and what runs in them.
// It is handed over as a file.
type spec struct {
	Name string
	Dir  string // logs, and the disk's directories

	// Path goes before the machine's PATH for the units.
	Path []string
	// Overlay lists directories of the machine that may be written to without
	// the machine seeing it. What is written is kept below Disk.
	Overlay []string
	Disk    string
	// Binds lists paths that are directories of their own below Disk.
	Binds []string
	Files map[string]string // written at each boot
	// Sysctls are written, those of the network namespace. ShownSysctls are files
	// with these contents in the place of the machine's.
	Sysctls      map[string]string
	ShownSysctls map[string]string
	Units        []unit
}

// unit is a process that is started again when it ends.
type unit struct {
	Name  string
	Args  []string
	Start bool // at boot
}

func (s spec) path() string { return filepath.Join(s.Dir, "spec.json") }

func (s spec) write() error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, "log"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(s.path(), raw, 0o600)
}

func readSpec(path string) (spec, error) {
	var s spec
	raw, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// order is what process 1 is asked for over its socket, and outcome the answer.
type order struct {
	Unit string
	Run  bool
}

type outcome struct {
	Error string `json:",omitempty"`
}

// orderSocket is where process 1 listens, in its own /run.
const orderSocket = "/run/podnet-init.sock"
