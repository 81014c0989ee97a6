package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	current "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

func main() { os.Exit(run()) }

func run() int {
	p := &plugin{}
	versions := version.PluginSupports(supported()...)
	e := skel.PluginMainFuncsWithError(skel.CNIFuncs{
		Add:    stoppable(p.add),
		Check:  stoppable(p.check),
		Del:    stoppable(p.del),
		GC:     stoppable(p.gc),
		Status: stoppable(p.status),
	}, versions, "CNI plugin antrea-lite-cni of antrea-lite: plugs Pods into Open vSwitch through the node agent")
	if e == nil {
		e = p.answer()
	}
	if e == nil {
		return 0
	}
	p.abandon()
	if err := printError(os.Stdout, p.version, explain(e)); err != nil {
		fmt.Fprintln(os.Stderr, "antrea-lite-cni: cannot write the error to stdout:", err, "the error was:", e)
	}
	return 1
}

// stoppable gives a verb a context that ends with SIGTERM. Outside a verb a
// signal just ends the process; a connection that breaks makes the agent undo.
func stoppable(verb func(context.Context, *skel.CmdArgs) error) func(*skel.CmdArgs) error {
	return func(a *skel.CmdArgs) error {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		defer stop()
		return verb(ctx, a)
	}
}

// supported lists the CNI versions, oldest first.
func supported() []string { return []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// plugin is one run of the plugin. An ADD leaves its answer here, because skel
// still looks at the network namespace after the callback and may refuse it;
// what is printed by then cannot be taken back.
type plugin struct {
	version string // of the request, once it is known
	result  *current.Result
	call    *cniapi.Call
	undo    func() // takes back what a delegated plugin gave
}

// answer prints the result of an ADD and confirms it to the agent.
func (p *plugin) answer() *types.Error {
	if p.result == nil {
		return nil
	}
	res, err := inVersion(p.result, p.version)
	if err == nil {
		err = res.Print()
	}
	if err != nil {
		return types.NewError(cniapi.CodeIO, fmt.Sprintf("cannot write the result to stdout: %v", err), "the interface is removed again")
	}
	call := p.call
	p.call = nil
	if err := call.Confirm(); err != nil {
		// The agent is gone or about to undo. Printed is printed: CHECK and the
		// agent's own reconciliation find out.
		fmt.Fprintln(os.Stderr, "antrea-lite-cni: the agent did not take the confirmation:", err)
	}
	return nil
}

// abandon takes back an ADD that was answered and could not be passed on.
func (p *plugin) abandon() {
	if p.call == nil {
		return
	}
	p.call.Close()
	if p.undo != nil {
		p.undo()
	}
}
