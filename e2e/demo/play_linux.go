package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/containernetworking/cni/libcni"
	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/antrea-lite/podnet/e2e/lab"
	"github.com/antrea-lite/podnet/internal/nettest"
)

// story is the demo while it plays.
type story struct {
	*screen
	node     *lab.Node
	cni      *libcni.CNIConfig
	pods     []*member
	baseline lab.Listing
}

// member is one of the six Pods.
type member struct {
	*lab.Pod
	vlan int
	list *libcni.NetworkConfigList
}

// cast is who plays.
func cast() []struct {
	name string
	vlan int
} {
	return []struct {
		name string
		vlan int
	}{{"web", 0}, {"shop", 0}, {"database", 0}, {"blue-1", 10}, {"blue-2", 10}, {"red", 20}}
}

// play tells the whole story; the first step that fails ends it.
func play(ctx context.Context, o options, out *screen) (err error) {
	if o, err = furnish(o); err != nil {
		return err
	}
	s := &story{screen: out}
	defer func() { err = errors.Join(err, s.end()) }()
	began := time.Now()
	for _, part := range []func(context.Context, options) error{
		s.start, s.plug, s.talk, s.apart, s.spoof, s.look, s.restart, s.check, s.unplug,
	} {
		if err := part(ctx, o); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			s.fail("this step", err)
			if s.node != nil {
				s.note("the agent's last words:")
				s.block(s.node.AgentLog(15))
			}
			return errors.New("the demo did not end well")
		}
	}
	s.title("Done in %s", short(time.Since(began)))
	return nil
}

// end takes everything down; the namespaces would do the same.
func (s *story) end() error {
	if s.node == nil {
		return nil
	}
	return s.node.Close()
}

func (s *story) start(ctx context.Context, o options) error {
	s.title("1  Start: Open vSwitch and the agent, in private namespaces")
	t := time.Now()
	node, err := lab.NewNode(lab.NodeConfig{Agent: o.agent, CNI: o.cni, Datapath: o.datapath, PodCIDRs: []string{"10.10.0.0/24", "fd00:10::/64"}})
	if err != nil {
		return err
	}
	s.node = node
	text, err := node.Switch.Appctl("version")
	if err != nil {
		return err
	}
	version, _, _ := strings.Cut(text, "\n")
	s.ok("%s with its own database and sockets, datapath %s, %s", version, o.datapath, short(time.Since(t)))
	t = time.Now()
	if err := node.StartAgent(ctx); err != nil {
		return err
	}
	s.ok("antrea-lite agent is ready: bridge %s, gateway %s, Pod ranges 10.10.0.0/24 and fd00:10::/64, %s", lab.Bridge, lab.GatewayName, short(time.Since(t)))
	s.cni = libcni.NewCNIConfigWithCacheDir([]string{filepath.Dir(o.cni)}, filepath.Join(node.Dir, "libcni"), nil)
	s.baseline, err = node.State()
	return err
}

func (s *story) plug(ctx context.Context, _ options) error {
	s.title("2  Plug in six Pods: libcni runs the CNI plugin, as containerd does")
	var table bytes.Buffer
	w := tabwriter.NewWriter(&table, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "POD\tVLAN\tIPv4\tIPv6\tMAC\tOVS PORT\tADD TOOK")
	for _, c := range cast() {
		pod, err := s.node.NewPod(c.name, map[string]any{"vlan": c.vlan})
		if err != nil {
			return err
		}
		list, err := confList(pod.Conf)
		if err != nil {
			return err
		}
		m := &member{Pod: pod, vlan: c.vlan, list: list}
		t := time.Now()
		res, err := s.cni.AddNetworkList(ctx, list, m.runtime())
		if err != nil {
			return fmt.Errorf("ADD %s: %w", c.name, err)
		}
		took := time.Since(t)
		if pod.Result, err = current.NewResultFromResult(res); err != nil {
			return err
		}
		s.pods = append(s.pods, m)
		mac, err := pod.MAC()
		if err != nil {
			return err
		}
		vlan := "-"
		if c.vlan != 0 {
			vlan = fmt.Sprint(c.vlan)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.name, vlan, pod.Addr(false), pod.Addr(true), net.HardwareAddr(mac[:]), pod.HostInterface(), short(took))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	s.block(table.String())
	s.ok("flows were in before each ADD returned")
	return nil
}

// runtime is what containerd tells libcni about the Pod.
func (m *member) runtime() *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: m.ContainerID, NetNS: m.NetNS, IfName: m.IfName, Args: [][2]string{
		{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "demo"}, {"K8S_POD_NAME", m.Name}, {"K8S_POD_UID", "uid-" + m.Name},
	}}
}

func (s *story) pod(name string) *member {
	for _, m := range s.pods {
		if m.Name == name {
			return m
		}
	}
	return nil
}

func (s *story) check(ctx context.Context, _ options) error {
	s.title("8  CHECK: the plugin compares interface, addresses, routes, port and flows with the record")
	for _, m := range s.pods {
		if err := s.cni.CheckNetworkList(ctx, m.list, m.runtime()); err != nil {
			return fmt.Errorf("CHECK %s: %w", m.Name, err)
		}
	}
	s.ok("all six as they should be")
	return nil
}

func (s *story) unplug(ctx context.Context, _ options) error {
	s.title("9  Unplug: DEL, and what is left")
	t := time.Now()
	for _, m := range s.pods {
		if err := s.cni.DelNetworkList(ctx, m.list, m.runtime()); err != nil {
			return fmt.Errorf("DEL %s: %w", m.Name, err)
		}
	}
	s.ok("six DELs in %s", short(time.Since(t)))
	for _, m := range s.pods {
		if err := nettest.DeleteNS(m.NetNS); err != nil {
			return err
		}
	}
	settle, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := lab.Until(settle, func() error {
		now, err := s.node.State()
		if err != nil {
			return err
		}
		if diff := now.Diff(s.baseline); diff != "" {
			return fmt.Errorf("something is left:\n%s", diff)
		}
		return nil
	}); err != nil {
		return err
	}
	s.ok("no port, flow, tracked connection, lease, interface or namespace of any Pod is left on the node")
	if err := s.node.Close(); err != nil {
		return err
	}
	s.node = nil
	s.ok("agent and Open vSwitch have ended")
	return nil
}

// confList wraps the configuration of one plugin into a list, which is what a
// runtime reads from the CNI configuration directory.
func confList(conf []byte) (*libcni.NetworkConfigList, error) {
	plugin, err := libcni.NetworkPluginConfFromBytes(conf)
	if err != nil {
		return nil, err
	}
	list, err := json.Marshal(map[string]any{
		"cniVersion": plugin.Network.CNIVersion, "name": plugin.Network.Name, "plugins": []json.RawMessage{conf},
	})
	if err != nil {
		return nil, err
	}
	return libcni.NetworkConfFromBytes(list)
}
