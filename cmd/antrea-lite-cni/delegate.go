package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// undoTimeout bounds the DEL that takes back a failed ADD's addresses; the call's own time may be over by then.
const undoTimeout = 10 * time.Second

// given is what a delegated IPAM plugin reserved.
type given struct {
	addresses []cniapi.Address
	routes    []cniapi.Route
	dns       types.DNS
}

// delegateAdd runs the IPAM plugin's ADD with the configuration as it came and
// reads its result, which may be of any CNI version.
//
// cni/pkg/invoke does the same. It is not used because it brings OpenTelemetry
// and with it net/http into a program that starts for every call.
func delegateAdd(ctx context.Context, name string, a *skel.CmdArgs) (*given, error) {
	out, err := delegateExec(ctx, name, "ADD", a)
	if err != nil {
		return nil, err
	}
	bad := func(err error) error {
		return types.NewError(cniapi.CodeDelegated, fmt.Sprintf("IPAM plugin %s gave an unusable result: %v", name, err), "")
	}
	var head struct {
		CNIVersion string `json:"cniVersion"`
	}
	if err := errors.Join(json.Unmarshal(a.StdinData, &head), json.Unmarshal(out, &head)); err != nil {
		return nil, bad(err)
	}
	raw, err := create.Create(head.CNIVersion, out)
	if err != nil {
		return nil, bad(err)
	}
	res, err := current.NewResultFromResult(raw)
	if err != nil {
		return nil, bad(err)
	}
	g := &given{dns: res.DNS}
	for _, ip := range res.IPs {
		p, ok := prefixOf(ip.Address)
		if !ok {
			return nil, bad(fmt.Errorf("address %v", ip.Address))
		}
		g.addresses = append(g.addresses, cniapi.Address{Prefix: p, Gateway: addrOf(ip.Gateway)})
	}
	for _, r := range res.Routes {
		p, ok := prefixOf(r.Dst)
		if !ok {
			return nil, bad(fmt.Errorf("route to %v", r.Dst))
		}
		g.routes = append(g.routes, cniapi.Route{Dst: p, GW: addrOf(r.GW), MTU: r.MTU})
	}
	if len(g.addresses) == 0 {
		return nil, types.NewError(cniapi.CodeDelegated, fmt.Sprintf("IPAM plugin %s gave no address", name),
			`see its configuration under "ipam"; {"type": "none"} asks for an interface without addresses`)
	}
	return g, nil
}

// delegateUndo releases what a failed ADD reserved. The error that made it
// necessary is what the caller reports; the runtime's DEL comes here again.
func delegateUndo(ctx context.Context, name string, a *skel.CmdArgs) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := delegateRun(ctx, name, "DEL", a); err != nil {
		fmt.Fprintln(os.Stderr, "antrea-lite-cni: while undoing a failed ADD:", err)
	}
}

// delegateRun runs a verb whose output does not matter.
func delegateRun(ctx context.Context, name, verb string, a *skel.CmdArgs) error {
	_, err := delegateExec(ctx, name, verb, a)
	return err
}

func delegateExec(ctx context.Context, name, verb string, a *skel.CmdArgs) ([]byte, error) {
	path, err := findPlugin(name, a.Path)
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), "CNI_COMMAND="+verb)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(a.StdinData), &stdout, &stderr
	// Asked to stop first: a plugin killed while it reserves cannot clean up.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return nil, delegateError(ctx, name, verb, err, stdout.Bytes(), stderr.String())
	}
	return stdout.Bytes(), nil
}

// delegateError keeps the plugin's own code and words and says whose they are.
func delegateError(ctx context.Context, name, verb string, err error, stdout []byte, stderr string) error {
	if ctx.Err() != nil {
		return types.NewError(cniapi.CodeTryAgain, fmt.Sprintf("IPAM plugin %s was stopped during %s: %v", name, verb, context.Cause(ctx)), "the call may be repeated")
	}
	var own types.Error
	if json.Unmarshal(stdout, &own) == nil && own.Msg != "" {
		return types.NewError(own.Code, fmt.Sprintf("IPAM plugin %s, %s: %s", name, verb, own.Msg), own.Details)
	}
	return types.NewError(cniapi.CodeDelegated, fmt.Sprintf("IPAM plugin %s, %s: %v", name, verb, err), strings.TrimSpace(stderr))
}

// findPlugin looks the plugin up in CNI_PATH and nowhere else. A name with a
// path separator would run any program of the machine.
func findPlugin(name, path string) (string, error) {
	if name != filepath.Base(name) || name == "." || name == ".." {
		return "", confError("ipam.type", name, "name a plugin in CNI_PATH without a directory")
	}
	for _, dir := range filepath.SplitList(path) {
		for _, suffix := range suffixes() {
			file := filepath.Join(dir, name+suffix)
			if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() {
				return file, nil
			}
		}
	}
	return "", types.NewError(cniapi.CodeDelegated, fmt.Sprintf("IPAM plugin %q is not in CNI_PATH %q", name, path),
		`install it there, or use "ipam": {"type": "antrea-lite"} for the agent's own`)
}

func addrOf(ip []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}
