// kubelab builds and runs Kubernetes clusters on this machine; see package
// cluster. `kubelab help` lists what it can do.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/antrea-lite/podnet/e2e/k8s/build"
	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
	"github.com/antrea-lite/podnet/e2e/k8s/networks"
)

func main() {
	cluster.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newLab().command().ExecuteContext(ctx)
	stop()
	// The command that was passed through has said itself what was wrong.
	var code exitCode
	if errors.As(err, &code) {
		os.Exit(int(code))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubelab:", err)
		os.Exit(1)
	}
}

// exitCode is the code of a command that was passed through and failed.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprint("exit code ", int(e)) }

// lab has the settings of all sub-commands.
type lab struct {
	root       string
	dir        string
	containerd string
	network    string
	nodes      int
	pods       int
	serial     int
	dual       bool
	upstream   upstreamFlags
	start      time.Time
}

func newLab() *lab { return &lab{start: time.Now()} }

func (l *lab) command() *cobra.Command {
	root := &cobra.Command{Use: "kubelab", Short: "Kubernetes clusters on this machine, from package registries alone", SilenceUsage: true, SilenceErrors: true}
	flags := root.PersistentFlags()
	flags.StringVar(&l.root, "root", ".", "top of the source tree")
	flags.StringVar(&l.dir, "dir", "", "directory of the cluster (default ROOT/.cache/k8s/cluster)")
	flags.StringVar(&l.containerd, "containerd", "", "directory of the containerd to use; one is built by default")
	up := l.sub("up", "make a cluster and wait until its nodes are registered", cobra.NoArgs, l.up)
	up.Flags().IntVar(&l.nodes, "nodes", 2, "number of nodes, 1 to 9")
	up.Flags().BoolVar(&l.dual, "dual", false, "IPv6 beside IPv4")
	conformance := l.sub("conformance [REGEXP]", "upstream sig-network tests, all that can run here or those whose names match, in a cluster of their own", cobra.MaximumNArgs(1), l.conformance)
	conformance.Flags().StringVar(&l.network, "network", "antrea-lite", "what connects the Pods: bridge or antrea-lite")
	conformance.Flags().IntVar(&l.upstream.processes, "procs", 6, "tests at a time")
	conformance.Flags().StringVar(&l.upstream.report, "report", "", "file to write a report to, in Markdown")
	conformance.Flags().BoolVar(&l.upstream.excluded, "excluded", false, "those too that are known not to work here")
	buildParts := l.sub("build", "build what a cluster consists of, where the cache has it not", cobra.NoArgs, l.build)
	buildParts.Flags().BoolVar(&l.upstream.build, "upstream", false, "the upstream tests too")
	bench := l.sub("bench", "Pod start latency with antrea-lite beside the bridge plugin, each in a cluster of its own", cobra.NoArgs, l.bench)
	bench.Flags().IntVar(&l.pods, "pods", 100, "Pods that start at once")
	bench.Flags().IntVar(&l.serial, "serial", 50, "Pods that start one after the other")
	root.AddCommand(up, buildParts,
		l.sub("down", "end the cluster and remove all that it made", cobra.NoArgs, l.down),
		through(l.sub("kubectl [ARGUMENT]...", "kubectl as administrator", cobra.ArbitraryArgs, l.kubectl)),
		through(l.sub("exec NODE COMMAND [ARGUMENT]...", "a command inside a node", cobra.MinimumNArgs(2), l.exec)),
		l.sub("reboot NODE", "cut a node's power and boot it", cobra.ExactArgs(1), l.reboot),
		l.sub("load ARCHIVE", "give every node the images of an archive", cobra.ExactArgs(1), l.load),
		l.sub("install NETWORK", "make bridge or antrea-lite the cluster's network", cobra.ExactArgs(1), l.install),
		conformance, bench,
	)
	return root
}

func (l *lab) sub(use, short string, args cobra.PositionalArgs, run func(context.Context, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		root, err := filepath.Abs(l.root)
		if err != nil {
			return err
		}
		if l.root = root; l.dir == "" {
			l.dir = filepath.Join(root, ".cache", "k8s", "cluster")
		}
		return run(cmd.Context(), args)
	}}
}

// through passes flags on to the command that is run.
func through(c *cobra.Command) *cobra.Command {
	c.Flags().SetInterspersed(false)
	return c
}

func (l *lab) note(text string) {
	fmt.Fprintf(os.Stderr, "%6.1f s  %s\n", time.Since(l.start).Seconds(), text)
}

func (l *lab) builder() *build.Builder { return &build.Builder{Root: l.root, Progress: l.note} }

func (l *lab) build(ctx context.Context, _ []string) error {
	b := l.builder()
	_, err := b.Cluster(ctx, l.containerd)
	if err == nil && l.upstream.build {
		_, _, err = b.Upstream(ctx, false)
	}
	return err
}

func (l *lab) up(ctx context.Context, _ []string) error {
	parts, err := l.builder().Cluster(ctx, l.containerd)
	if err != nil {
		return err
	}
	_, err = cluster.Up(ctx, cluster.Config{Dir: l.dir, Nodes: l.nodes, DualStack: l.dual, Parts: parts}, l.note)
	return err
}

func (l *lab) down(ctx context.Context, _ []string) error {
	c, err := cluster.Open(l.dir)
	if err != nil {
		return err
	}
	return c.Down(ctx)
}

func (l *lab) kubectl(ctx context.Context, args []string) error {
	c, err := cluster.Open(l.dir)
	if err != nil {
		return err
	}
	return attach(c.KubectlCommand(ctx, args...))
}

func (l *lab) exec(ctx context.Context, args []string) error {
	_, n, err := l.node(args[0])
	if err != nil {
		return err
	}
	command := args[1:]
	// As kubectl's users write it.
	if command[0] == "--" {
		command = command[1:]
	}
	cmd, err := n.Command(ctx, command...)
	if err != nil {
		return err
	}
	return attach(cmd)
}

func (l *lab) reboot(ctx context.Context, args []string) error {
	c, n, err := l.node(args[0])
	if err != nil {
		return err
	}
	return c.Reboot(ctx, n)
}

func (l *lab) load(ctx context.Context, args []string) error {
	c, err := cluster.Open(l.dir)
	if err != nil {
		return err
	}
	return c.Import(ctx, args[0])
}

func (l *lab) install(ctx context.Context, args []string) error {
	c, err := cluster.Open(l.dir)
	if err != nil {
		return err
	}
	n, err := networks.ByName(args[0], l.root)
	if err != nil {
		return err
	}
	return n.Install(ctx, c)
}

func (l *lab) node(name string) (*cluster.Cluster, *cluster.Node, error) {
	c, err := cluster.Open(l.dir)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, n := range c.Nodes() {
		if n.Name == name {
			return c, n, nil
		}
		names = append(names, n.Name)
	}
	return nil, nil, fmt.Errorf("no node %q: there are %s", name, strings.Join(names, ", "))
}

// attach runs a command on this program's terminal.
func attach(cmd *exec.Cmd) error {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exitCode(exit.ExitCode())
	}
	return err
}
