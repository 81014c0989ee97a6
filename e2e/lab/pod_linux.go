package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"

	current "github.com/containernetworking/cni/pkg/types/100"

	"github.com/antrea-lite/podnet/internal/nettest"
)

// Pod is a network namespace that was plugged in.
type Pod struct {
	Name        string
	ContainerID string
	NetNS       string
	IfName      string
	Args        string
	Conf        []byte // network configuration of its ADD
	Result      *current.Result
}

// NetConf builds a network configuration for the node's plugin; keys of extra win.
func (n *Node) NetConf(extra map[string]any) []byte {
	conf := map[string]any{
		"cniVersion":  "1.1.0",
		"name":        "podnet",
		"type":        filepath.Base(n.Plugin.Path),
		"agentSocket": n.Socket(),
		"ipam":        map[string]any{"type": "antrea-lite"},
	}
	maps.Copy(conf, extra)
	raw, err := json.Marshal(conf)
	if err != nil {
		panic(err) // only a value that is no JSON gets here
	}
	return raw
}

// NewPod makes the namespace of a Pod without plugging it in. extra goes to NetConf.
func (n *Node) NewPod(name string, extra map[string]any) (*Pod, error) {
	ns, err := nettest.NewNS(name)
	if err != nil {
		return nil, err
	}
	// Runtimes use 64 hexadecimal digits.
	sum := sha256.Sum256([]byte(name))
	return &Pod{
		Name:        name,
		ContainerID: hex.EncodeToString(sum[:]),
		NetNS:       ns,
		IfName:      "eth0",
		Args:        fmt.Sprintf("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=%s;K8S_POD_INFRA_CONTAINER_ID=x;K8S_POD_UID=uid-%s", name, name),
		Conf:        n.NetConf(extra),
	}, nil
}

// Call is the call of command for this Pod.
func (p *Pod) Call(command string) Call {
	return Call{Command: command, ContainerID: p.ContainerID, NetNS: p.NetNS, IfName: p.IfName, Args: p.Args, Stdin: p.Conf}
}

// Plug makes a Pod and runs ADD for it.
func (n *Node) Plug(ctx context.Context, name string, extra map[string]any) (*Pod, error) {
	p, err := n.NewPod(name, extra)
	if err != nil {
		return nil, err
	}
	if err := n.Add(ctx, p); err != nil {
		return nil, errors.Join(err, nettest.DeleteNS(p.NetNS))
	}
	return p, nil
}

// Add runs ADD for a Pod and keeps the result.
func (n *Node) Add(ctx context.Context, p *Pod) error {
	res, err := n.Plugin.Add(ctx, p.Call("ADD"))
	if err != nil {
		return fmt.Errorf("ADD %s: %w", p.Name, err)
	}
	p.Result = res
	return nil
}

// Check runs CHECK for a Pod with the result of its ADD.
func (n *Node) Check(ctx context.Context, p *Pod) error {
	c := p.Call("CHECK")
	var err error
	if c.Stdin, err = p.withResult(); err != nil {
		return err
	}
	_, err = n.Plugin.Run(ctx, c)
	return err
}

// withResult is the configuration with prevResult, which CHECK and DEL carry.
func (p *Pod) withResult() ([]byte, error) {
	var conf map[string]any
	if err := json.Unmarshal(p.Conf, &conf); err != nil {
		return nil, err
	}
	if p.Result != nil {
		res, err := p.Result.GetAsVersion(conf["cniVersion"].(string))
		if err != nil {
			return nil, err
		}
		conf["prevResult"] = res
	}
	return json.Marshal(conf)
}

// Del runs DEL for a Pod; its namespace stays.
func (n *Node) Del(ctx context.Context, p *Pod) error {
	c := p.Call("DEL")
	var err error
	if c.Stdin, err = p.withResult(); err != nil {
		return err
	}
	if _, err := n.Plugin.Run(ctx, c); err != nil {
		return fmt.Errorf("DEL %s: %w", p.Name, err)
	}
	return nil
}

// Unplug runs DEL and removes the namespace.
func (n *Node) Unplug(ctx context.Context, p *Pod) error {
	return errors.Join(n.Del(ctx, p), nettest.DeleteNS(p.NetNS))
}

// Addr returns the Pod's first address of a family; the zero Addr when it has none.
func (p *Pod) Addr(v6 bool) netip.Addr { return p.pick(v6, false) }

// Gateway returns the gateway of the Pod's first address of a family.
func (p *Pod) Gateway(v6 bool) netip.Addr { return p.pick(v6, true) }

func (p *Pod) pick(v6, gateway bool) netip.Addr {
	for _, ip := range p.Result.IPs {
		raw := ip.Address.IP
		if gateway {
			raw = ip.Gateway
		}
		if addr, ok := netip.AddrFromSlice(raw); ok && addr.Unmap().Is6() == v6 {
			return addr.Unmap()
		}
	}
	return netip.Addr{}
}

// MAC is the address of the container's end.
func (p *Pod) MAC() (MAC, error) {
	for _, i := range p.Result.Interfaces {
		if i.Sandbox != "" {
			return ParseMAC(i.Mac)
		}
	}
	return MAC{}, fmt.Errorf("the result of %s names no interface in a sandbox: %v", p.Name, p.Result.Interfaces)
}

// HostInterface is the name of the host's end, which is the OVS port's too.
func (p *Pod) HostInterface() string {
	for _, i := range p.Result.Interfaces {
		if i.Sandbox == "" {
			return i.Name
		}
	}
	return ""
}

// At is the Pod's endpoint of a family.
func (p *Pod) At(v6 bool) Endpoint { return Endpoint{NS: p.NetNS, Addr: p.Addr(v6)} }
