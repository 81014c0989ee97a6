package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// world is a plugin with the host namespace that it works in.
type world struct {
	name   string
	host   string // path of the host's namespace; lab.Host: the process's own
	plugin lab.Plugin
	conf   []byte
}

// call runs the plugin in the world's host namespace and times it.
func (w *world) call(ctx context.Context, verb string, p *lab.Pod) (time.Duration, error) {
	c := p.Call(verb)
	c.Stdin = w.conf
	var took time.Duration
	err := lab.In(w.host, func() error {
		start := time.Now()
		var err error
		if verb == "ADD" {
			p.Result, err = w.plugin.Add(ctx, c)
		} else {
			_, err = w.plugin.Run(ctx, c)
		}
		took = time.Since(start)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %s %s: %w", w.name, verb, p.Name, err)
	}
	return took, nil
}

// ours is Open vSwitch, the agent and our plugin.
type ours struct {
	world
	node *lab.Node
}

func newOurs(ctx context.Context, o options) (*ours, error) {
	node, err := lab.NewNode(lab.NodeConfig{Agent: o.agent, CNI: o.cni, Datapath: o.datapath, PodCIDRs: []string{"10.10.0.0/16"}})
	if err != nil {
		return nil, err
	}
	if err := node.StartAgent(ctx); err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return &ours{world: world{name: "antrea-lite", plugin: node.Plugin, conf: node.NetConf(nil)}, node: node}, nil
}

func (o *ours) close() error { return o.node.Close() }

// bridge is containernetworking's bridge plugin in a host namespace of its own.
type bridge struct {
	world
	leases string
}

func newBridge(o options) (*bridge, error) {
	dir, err := filepath.Abs(o.peer)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"bridge", "host-local"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("-peer: %w: `make bench` builds it", err)
		}
	}
	b := &bridge{world: world{name: "bridge + host-local", plugin: lab.Plugin{Path: filepath.Join(dir, "bridge")}}}
	if b.leases, err = os.MkdirTemp("", "leases"); err != nil {
		return nil, err
	}
	b.conf, err = json.Marshal(map[string]any{
		"cniVersion": "1.1.0", "name": "bench", "type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
		"ipam": map[string]any{
			"type": "host-local", "dataDir": b.leases,
			"ranges": []any{[]any{map[string]any{"subnet": "10.22.0.0/16"}}},
			"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
		},
	})
	if err != nil {
		return nil, err
	}
	b.host, err = nettest.NewNS("bridge-host")
	return b, err
}

func (b *bridge) close() error { return errors.Join(nettest.DeleteNS(b.host), os.RemoveAll(b.leases)) }

// newPods makes the namespaces of a run.
func (w *world) newPods(n int) ([]*lab.Pod, error) {
	pods := make([]*lab.Pod, n)
	for i := range pods {
		name := fmt.Sprintf("%.3s%d", w.name, i)
		ns, err := nettest.NewNS(name)
		if err != nil {
			return nil, err
		}
		pods[i] = &lab.Pod{Name: name, ContainerID: name, NetNS: ns, IfName: "eth0",
			Args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=bench;K8S_POD_NAME=" + name}
	}
	return pods, nil
}

func dropPods(pods []*lab.Pod) error {
	var errs []error
	for _, p := range pods {
		errs = append(errs, nettest.DeleteNS(p.NetNS))
	}
	return errors.Join(errs...)
}

// firstPing sends one ping to the Pod's gateway right after ADD.
func firstPing(p *lab.Pod) (lost bool, err error) {
	gateway := p.Gateway(false)
	if gateway == (netip.Addr{}) {
		return false, fmt.Errorf("%s has no gateway", p.Name)
	}
	_, err = lab.Ping(p.NetNS, p.Addr(false), gateway, 56, 2*time.Second)
	if errors.Is(err, lab.ErrNoReply) {
		return true, nil
	}
	return false, err
}

// describe tells what the figures were measured on.
func describe(o *ours) map[string]string {
	m := map[string]string{"cpus": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version()}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		m["kernel"] = unix.ByteSliceToString(uts.Release[:])
	}
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(raw)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				m["cpu"] = strings.TrimSpace(value)
			}
		}
	}
	if version, err := o.node.Switch.Appctl("version"); err == nil {
		m["ovs"], _, _ = strings.Cut(version, "\n")
	}
	return m
}
