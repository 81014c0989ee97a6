package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
)

// Plugin runs a CNI plugin binary as a container runtime does.
type Plugin struct {
	Path string // the binary
	Dirs string // CNI_PATH, where delegated plugins are looked for; empty: the binary's directory
}

// Call is one call of a plugin. Empty fields are passed on empty.
type Call struct {
	Command     string // ADD, DEL, CHECK, GC, STATUS, VERSION
	ContainerID string
	NetNS       string
	IfName      string
	Args        string   // CNI_ARGS
	Stdin       []byte   // network configuration
	Unset       []string // variables that are missing altogether
}

// Run runs the plugin. A plugin's own error comes back as *types.Error;
// stdout is returned in every case.
func (p Plugin) Run(ctx context.Context, c Call) (stdout []byte, err error) {
	cmd := p.Command(ctx, c)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err = cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	var wire struct {
		Code    *uint  `json:"code"`
		Msg     string `json:"msg"`
		Details string `json:"details"`
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && json.Unmarshal(out.Bytes(), &wire) == nil && wire.Code != nil {
		return out.Bytes(), &types.Error{Code: *wire.Code, Msg: wire.Msg, Details: wire.Details}
	}
	return out.Bytes(), fmt.Errorf("%s %s: %w: stdout %q stderr %q", filepath.Base(p.Path), c.Command, err, out.String(), stderr.String())
}

// Command prepares the process without starting it, for calls that are to be interrupted.
func (p Plugin) Command(ctx context.Context, c Call) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.Path)
	cmd.Stdin = bytes.NewReader(c.Stdin)
	dirs := p.Dirs
	if dirs == "" {
		dirs = filepath.Dir(p.Path)
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for _, kv := range [][2]string{
		{"CNI_COMMAND", c.Command}, {"CNI_CONTAINERID", c.ContainerID}, {"CNI_NETNS", c.NetNS},
		{"CNI_IFNAME", c.IfName}, {"CNI_ARGS", c.Args}, {"CNI_PATH", dirs},
	} {
		if !slices.Contains(c.Unset, kv[0]) {
			cmd.Env = append(cmd.Env, kv[0]+"="+kv[1])
		}
	}
	return cmd
}

// Add runs ADD and reads the result, whatever its version.
func (p Plugin) Add(ctx context.Context, c Call) (*current.Result, error) {
	c.Command = "ADD"
	out, err := p.Run(ctx, c)
	if err != nil {
		return nil, err
	}
	res, err := create.CreateFromBytes(out)
	if err != nil {
		return nil, fmt.Errorf("the result of ADD is not understood: %w: %s", err, out)
	}
	return current.NewResultFromResult(res)
}
