package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
	"github.com/antrea-lite/podnet/e2e/k8s/networks"
	"github.com/antrea-lite/podnet/e2e/k8s/workload"
)

// startLatency is how long Pods took to be Ready with one network.
type startLatency struct {
	network          string
	onebyone, atOnce workload.Times
}

// bench starts Pods with each network, in a cluster of its own, and prints the
// times side by side.
func (l *lab) bench(ctx context.Context, _ []string) error {
	parts, err := l.builder().Cluster(ctx, l.containerd)
	if err != nil {
		return err
	}
	var all []startLatency
	for _, name := range []string{"bridge", "antrea-lite"} {
		measured, err := l.benchOne(ctx, name, parts)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, measured)
	}
	return printLatency(os.Stdout, all)
}

func (l *lab) benchOne(ctx context.Context, name string, parts cluster.Parts) (_ startLatency, err error) {
	network, err := networks.ByName(name, l.root)
	if err != nil {
		return startLatency{}, err
	}
	prefix := filepath.Join(l.root, ".cache", "k8s", "bench-")
	if err := cluster.RemoveDead(ctx, prefix); err != nil {
		return startLatency{}, err
	}
	c, err := cluster.Up(ctx, cluster.Config{Dir: fmt.Sprint(prefix, os.Getpid()), Parts: parts, Bound: true}, l.note)
	if err != nil {
		return startLatency{}, err
	}
	defer func() { err = errors.Join(err, c.Down(context.WithoutCancel(ctx))) }()
	if err := network.Install(ctx, c); err != nil {
		return startLatency{}, err
	}
	if _, err := c.Kubectl(ctx, "wait", "--for=condition=Ready", "node", "--all", "--timeout=60s"); err != nil {
		return startLatency{}, err
	}
	s := workload.Starter{Client: c.Client(), Namespace: metav1.NamespaceDefault}
	for _, n := range c.Nodes() {
		s.Nodes = append(s.Nodes, n.Name)
	}
	measured := startLatency{network: name}
	for _, run := range []struct {
		what  string
		start func(context.Context, int) (workload.Times, error)
		count int
		times *workload.Times
	}{
		// A network makes what it needs for a node's first Pod.
		{"first Pods", s.AtOnce, len(s.Nodes), new(workload.Times)},
		{"Pods one by one", s.OneByOne, l.serial, &measured.onebyone},
		{"Pods at once", s.AtOnce, l.pods, &measured.atOnce},
	} {
		if *run.times, err = run.start(ctx, run.count); err != nil {
			return startLatency{}, fmt.Errorf("%s: %w", run.what, err)
		}
		l.note(fmt.Sprintf("%s: %s, %d measured", name, run.what, len(*run.times)))
		if err := s.Remove(ctx); err != nil {
			return startLatency{}, err
		}
	}
	return measured, nil
}

func printLatency(w io.Writer, all []startLatency) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "created to Ready, s\tPods\tat a time\tp50\tp99\tlast\tPods a second")
	for _, run := range []struct {
		times func(startLatency) workload.Times
		width string
	}{
		{func(s startLatency) workload.Times { return s.onebyone }, "1"},
		{func(s startLatency) workload.Times { return s.atOnce }, "all"},
	} {
		for _, s := range all {
			times := run.times(s)
			// Those that start one after the other take the sum, others as long as the last.
			total := times.Percentile(100)
			if run.width == "1" {
				total = times.Sum()
			}
			fmt.Fprintf(t, "%s\t%d\t%s\t%.2f\t%.2f\t%.2f\t%.2f\n", s.network, len(times), run.width, times.Percentile(50).Seconds(),
				times.Percentile(99).Seconds(), times.Percentile(100).Seconds(), float64(len(times))/max(total, time.Millisecond).Seconds())
		}
	}
	return t.Flush()
}
