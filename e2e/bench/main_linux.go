// Bench times CNI ADD and DEL, process start included: ours on a real Open
// vSwitch against containernetworking's bridge with host-local, which needs no
// Open vSwitch at all. `make bench` builds and runs it.
//
// Both run in one go on the same machine with fresh network namespaces, made
// beforehand, and take turns, so that whatever else the machine does hits both.
// Each has a host namespace of its own. Ours does more: it installs the Pod's
// flows before ADD returns; the first ping of every Pod tells whether it did.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/antrea-lite/podnet/internal/nettest"
)

type options struct {
	agent, cni, peer, datapath string

	pods, width int
	format      string
}

func main() {
	var o options
	flag.StringVar(&o.agent, "agent", "bin/antrea-lite", "the agent's binary")
	flag.StringVar(&o.cni, "cni", "bin/antrea-lite-cni", "our plugin's binary")
	flag.StringVar(&o.peer, "peer", "bin/peer", "directory with the binaries bridge and host-local")
	flag.StringVar(&o.datapath, "datapath", "netdev", "datapath of Open vSwitch: netdev (userspace) or system (kernel)")
	flag.IntVar(&o.pods, "n", 200, "Pods in each run")
	flag.IntVar(&o.width, "width", 16, "calls at a time in the parallel run")
	flag.StringVar(&o.format, "o", "table", "output: table or json")
	flag.Parse()
	if o.pods < 1 || o.pods > 1000 || o.width < 1 || o.format != "table" && o.format != "json" {
		fmt.Fprintln(os.Stderr, "bench: -n is 1 to 1000, -width at least 1, -o table or json")
		os.Exit(2)
	}
	nettest.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := bench(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench runs the serial and the parallel part and prints the report.
func bench(ctx context.Context, o options) (err error) {
	ours, err := newOurs(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	peer, err := newBridge(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.close()) }()

	worlds := []*world{&ours.world, &peer.world}
	report := report{Machine: describe(ours), Pods: o.pods}
	for _, width := range []int{1, o.width} {
		results, err := run(ctx, worlds, o.pods, width)
		if err != nil {
			return err
		}
		report.Results = append(report.Results, results...)
	}
	if report.Steps, err = steps(ctx); err != nil {
		return err
	}
	return report.print(os.Stdout, o.format)
}
