package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

// Addresses are the node's own: IPv4 first.
func (c *Cluster) Addresses(n *Node) []netip.Addr {
	var addrs []netip.Addr
	for _, p := range c.cfg.fabric(n.number) {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// Import gives the node's containerd the images of an archive.
func (n *Node) Import(ctx context.Context, archive string) error {
	path, err := filepath.Abs(archive)
	if err != nil {
		return err
	}
	_, err = n.ctr(ctx, "images", "import", path)
	return err
}

func (n *Node) ctr(ctx context.Context, args ...string) (string, error) {
	return n.Run(ctx, append([]string{"ctr", "--address", containerdSocket, "--namespace", "k8s.io"}, args...)...)
}

func (n *Node) startKubelet() error {
	return errors.Join(n.Start("kubelet"), n.Start("kube-proxy"))
}

// Kill ends all processes of the node that have this command name, those in its
// containers too, as a crash would.
func (n *Node) Kill(ctx context.Context, comm string) error { return n.Signal(ctx, "KILL", comm) }

// Signal sends a signal, such as "STOP", to all processes of the node that have
// this command name, those in its containers too.
func (n *Node) Signal(ctx context.Context, signal, comm string) error {
	pids, err := n.Processes(comm)
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		return fmt.Errorf("%s has no process %q", n.Name, comm)
	}
	_, err = n.Run(ctx, append([]string{"kill", "-" + signal}, pids...)...)
	return err
}

// Processes lists the numbers, in the node, of the processes that have this
// command name.
func (n *Node) Processes(comm string) ([]string, error) {
	// The node's own /proc has its processes only.
	files, err := filepath.Glob(n.Root("/proc/[0-9]*/comm"))
	if err != nil {
		return nil, err
	}
	var pids []string
	for _, file := range files {
		// A process that ended meanwhile has none.
		if name, err := os.ReadFile(file); err == nil && string(name) == comm+"\n" {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids, nil
}

// installPlugins copies CNI plugins to where containerd looks for them, as the
// node image of a distribution has them.
func (n *Node) installPlugins(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	target := n.Root("/opt/cni/bin")
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if err := copyProgram(filepath.Join(dir, e.Name()), filepath.Join(target, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func copyProgram(from, to string) (err error) {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	if _, err := io.Copy(dst, src); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

// WriteCNI puts a network configuration where the node's containerd finds it;
// it never sees half of it.
func (n *Node) WriteCNI(name string, content []byte) error {
	dir := n.Root("/etc/cni/net.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp := filepath.Join(dir, "."+name)
	if err := os.WriteFile(temp, content, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, filepath.Join(dir, name))
}
