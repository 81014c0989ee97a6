package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// upTime is how long one step of Up may take on a busy machine.
const upTime = 2 * time.Minute

// pollEvery is the pause between two questions to a component that starts.
const pollEvery = 100 * time.Millisecond

// configFile, in a cluster's directory, has what it was made from.
const configFile = "cluster.json"

// Cluster is a running cluster. Its methods are for one goroutine, but those of
// Client and Kubectl and the commands inside nodes may be used concurrently.
type Cluster struct {
	cfg     Config
	control machine
	nodes   []*Node
	client  *kubernetes.Clientset
}

// Node is one node.
type Node struct {
	machine
	number byte // of the host on the fabric
}

// newCluster lays a cluster out; nothing is made or started.
func newCluster(cfg Config) *Cluster {
	c := &Cluster{cfg: cfg, control: machine{Name: controlName, dir: filepath.Join(cfg.Dir, controlName)}}
	for i := range cfg.Nodes {
		name := fmt.Sprint("n", i+1)
		c.nodes = append(c.nodes, &Node{machine{Name: name, dir: filepath.Join(cfg.Dir, name)}, byte(11 + i)})
	}
	return c
}

// Up makes a cluster and waits until every node is registered and has its Pod
// CIDRs. progress is told each step, by several goroutines. What was made is
// removed again when it fails.
func Up(ctx context.Context, cfg Config, progress func(step string)) (_ *Cluster, err error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("%w: a cluster there has to be taken down first", err)
	}
	c := newCluster(cfg)
	defer func() {
		if err != nil {
			err = errors.Join(c.withLogs(err), c.Down(context.WithoutCancel(ctx)))
		}
	}()
	if err := step(ctx, "processes started", progress, c.startMachines); err != nil {
		return nil, err
	}
	// No Pod starts before a network is installed, so images may come later than nodes.
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return step(groupCtx, "images imported", progress, c.fillNodes) })
	group.Go(func() error {
		if err := step(groupCtx, "API server ready", progress, c.startControllers); err != nil {
			return err
		}
		return step(groupCtx, "nodes registered", progress, c.register)
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return c, nil
}

// step does a part of Up.
func step(ctx context.Context, name string, progress func(string), do func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, upTime, fmt.Errorf("no %q within %s", name, upTime))
	defer cancel()
	if err := do(ctx); err != nil {
		return err
	}
	progress(name)
	return nil
}

// Open finds the cluster that Up made in dir.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, configFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no cluster in %s", dir)
	}
	if err != nil {
		return nil, err
	}
	var cfg Config
	if err := json.Unmarshal(raw, &cfg); err != nil {
		return nil, err
	}
	c := newCluster(cfg)
	return c, c.connect()
}

// Down ends a cluster and removes what it made.
func (c *Cluster) Down(ctx context.Context) error {
	var errs []error
	for _, m := range append(machines(c.nodes), &c.control) {
		errs = append(errs, m.kill(ctx))
	}
	for _, n := range c.nodes {
		errs = append(errs, removeCgroups(c.cgroup(n)))
	}
	if c.cfg.Disks != "" {
		errs = append(errs, os.RemoveAll(c.cfg.Disks))
	}
	// Last: it says where the disks are.
	return errors.Join(append(errs, os.RemoveAll(c.cfg.Dir))...)
}

// RemoveDead removes what is left of clusters whose directories' names are
// prefix and the id of the process that made them, where that was killed: the
// cluster's processes ended with it when it was Bound, directories and cgroups
// could not.
func RemoveDead(ctx context.Context, prefix string) error {
	found, err := filepath.Glob(prefix + "*")
	if err != nil {
		return err
	}
	for _, path := range found {
		pid := strings.TrimPrefix(path, prefix)
		if _, err := os.Stat(filepath.Join("/proc", pid)); err == nil {
			continue
		}
		// A Down that was interrupted has got rid of all else before.
		if _, err := os.Stat(filepath.Join(path, configFile)); errors.Is(err, os.ErrNotExist) {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
			continue
		}
		c, err := Open(path)
		if err != nil {
			return err
		}
		if err := c.Down(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Nodes are the nodes: n1, n2, and so on.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Config is what the cluster was made from.
func (c *Cluster) Config() Config { return c.cfg }

// ControlNS is the network namespace of the control plane: outside of the
// cluster, as Pods see it.
func (c *Cluster) ControlNS() string { return c.control.NetNS() }

// Outside are the control plane's addresses: IPv4 first.
func (c *Cluster) Outside() []netip.Addr {
	var addrs []netip.Addr
	for _, p := range c.cfg.fabric(1) {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

func (c *Cluster) startMachines(ctx context.Context) (err error) {
	if c.cfg.Disks, err = c.makeDisks(); err != nil {
		return err
	}
	raw, err := json.MarshalIndent(c.cfg, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.cfg.Dir, configFile), raw, 0o644); err != nil {
		return err
	}
	p, err := newPKI(filepath.Join(c.cfg.Dir, "pki"), fmt.Sprintf("https://%s:%d", ControlPlane(), apiPort))
	if err != nil {
		return err
	}
	for _, id := range c.identities() {
		if err := p.issue(id); err != nil {
			return err
		}
	}
	if err := c.control.boot(ctx, c.controlSpec(), c.cfg.Bound); err != nil {
		return err
	}
	if err := c.weave(); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := c.bootNode(ctx, n); err != nil {
			return err
		}
	}
	if err := c.connect(); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := lab.Every(ctx, pollEvery, func() error { _, err := n.ctr(ctx, "version"); return err }); err != nil {
			return fmt.Errorf("containerd of %s: %w", n.Name, err)
		}
	}
	return nil
}

func (c *Cluster) bootNode(ctx context.Context, n *Node) error {
	if err := makeCgroups(c.cgroup(n)); err != nil {
		return err
	}
	s, err := c.nodeSpec(n)
	if err != nil {
		return err
	}
	if err := n.boot(ctx, s, c.cfg.Bound); err != nil {
		return err
	}
	return c.plug(n)
}

// fillNodes gives the nodes what they have before a cluster is made of them.
func (c *Cluster) fillNodes(ctx context.Context) error {
	if err := c.Import(ctx, c.cfg.Parts.Images...); err != nil {
		return err
	}
	for _, n := range c.nodes {
		if err := n.installPlugins(c.cfg.Parts.Plugins); err != nil {
			return err
		}
	}
	return nil
}

// Import gives every node the images of archives.
func (c *Cluster) Import(ctx context.Context, archives ...string) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, n := range c.nodes {
		group.Go(func() error {
			for _, archive := range archives {
				if err := n.Import(ctx, archive); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *Cluster) startControllers(ctx context.Context) error {
	if err := c.apiReady(ctx); err != nil {
		return err
	}
	return errors.Join(c.control.Start("kube-controller-manager"), c.control.Start("kube-scheduler"))
}

func (c *Cluster) apiReady(ctx context.Context) error {
	return lab.Every(ctx, pollEvery, func() error { return c.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error() })
}

// register starts the kubelets and waits for what a first Pod needs.
func (c *Cluster) register(ctx context.Context) error {
	for _, n := range c.nodes {
		if err := n.startKubelet(); err != nil {
			return err
		}
	}
	for _, n := range c.nodes {
		err := lab.Every(ctx, pollEvery, func() error {
			node, err := c.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
			if err == nil && len(node.Spec.PodCIDRs) < len(c.cfg.PodCIDRs()) {
				err = fmt.Errorf("node %s has the Pod CIDRs %v", n.Name, node.Spec.PodCIDRs)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return lab.Every(ctx, pollEvery, func() error {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// withLogs adds what the processes said last.
func (c *Cluster) withLogs(err error) error {
	for _, m := range append(machines(c.nodes), &c.control) {
		logs, globErr := filepath.Glob(filepath.Join(m.dir, "log", "*.log"))
		if globErr != nil {
			return errors.Join(err, globErr)
		}
		for _, path := range logs {
			unit := filepath.Base(path[:len(path)-len(".log")])
			err = fmt.Errorf("%w\n--- %s %s:\n%s", err, m.Name, unit, m.Log(unit, 5))
		}
	}
	return err
}
