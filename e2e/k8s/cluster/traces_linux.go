package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// Traces lists what a cluster could leave on the machine it runs on: what
// lab.Machine lists, cgroups, firewall rules, settings of the kernel that are
// the whole machine's, directories of components, and processes.
func Traces() (lab.Listing, error) {
	l, err := lab.Machine()
	if err != nil {
		return nil, err
	}
	if l["cgroup"], err = cgroupNames(); err != nil {
		return nil, err
	}
	rules, err := exec.Command("nft", "list", "ruleset").Output()
	if err != nil {
		return nil, fmt.Errorf("nft list ruleset: %w", err)
	}
	l["firewall rule"] = nonEmpty(string(rules))
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/hostname", "net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
		value, err := os.ReadFile(filepath.Join("/proc/sys", name))
		if err != nil {
			return nil, err
		}
		l["sysctl"] = append(l["sysctl"], name+"="+string(bytes.TrimSpace(value)))
	}
	for _, dir := range []string{"/etc/cni", "/opt/cni", "/var/lib/cni", "/var/lib/kubelet", "/var/lib/containerd", "/var/log/pods",
		"/var/log/containers", "/run/containerd", "/run/openvswitch", "/run/antrea-lite", "/usr/libexec/kubernetes", "/lib/modules"} {
		if _, err := os.Lstat(dir); err == nil {
			l["directory"] = append(l["directory"], dir)
		}
	}
	l["process"], err = lab.Processes(mark)
	return l, err
}

// mark is in the environment of everything that runs in a cluster, containers aside.
const mark = "PODNET_K8S=1"

// cgroupNames lists the cgroups of clusters, whoever made them.
func cgroupNames() ([]string, error) {
	dirs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "kube*"))
		if err != nil {
			return nil, err
		}
		names = append(names, found...)
	}
	return names, nil
}

// State lists what Pods leave on a node: interfaces, namespaces, mounts, routes,
// cgroups, leases of addresses and, where there is an Open vSwitch, ports.
func (c *Cluster) State(ctx context.Context, n *Node) (lab.Listing, error) {
	l := lab.Listing{}
	script := map[string][]string{
		"interface": {"ip", "-o", "link"},
		"route":     {"sh", "-c", "ip -4 route; ip -6 route"},
		"neighbour": {"sh", "-c", "ip neigh show nud permanent"},
	}
	if _, err := os.Stat(n.Root("/run/openvswitch/db.sock")); err == nil {
		script["port"] = []string{"ovs-vsctl", "--timeout=10", "--columns=name", "--bare", "list", "Interface"}
	}
	for kind, args := range script {
		cmd, err := n.Command(ctx, args...)
		if err != nil {
			return nil, err
		}
		out, err := output(cmd)
		if err != nil {
			return nil, err
		}
		l[kind] = nonEmpty(out)
	}
	for i, line := range l["route"] {
		// It says that the bridge has no port at this moment.
		l["route"][i] = strings.Replace(line, " linkdown", "", 1)
	}
	for i, line := range l["interface"] {
		// "7: eth0@if5: <FLAGS> mtu ...": indices change with a reboot.
		_, rest, _ := strings.Cut(line, ": ")
		l["interface"][i] = rest[:strings.IndexAny(rest, "@:")]
	}
	for kind, pattern := range map[string]string{
		"network namespace": "/run/netns/*",
		"lease":             "/var/lib/cni/networks/*/[0-9a-f]*[.:]*",
		"lease of agent":    "/run/antrea-lite/leases/*/[0-9a-f]*[.:]*",
		"sandbox":           tasks + "/*",
	} {
		found, err := filepath.Glob(n.Root(pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			l[kind] = append(l[kind], strings.TrimPrefix(path, n.Root("/")))
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", n.PID()))
	if err != nil {
		return nil, err
	}
	for _, line := range nonEmpty(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			l["mount"] = append(l["mount"], fields[4])
		}
	}
	l["cgroup"], err = podCgroups(c.cgroup(n))
	for _, lines := range l {
		for i := range lines {
			lines[i] = anonymous(lines[i])
		}
		slices.Sort(lines)
	}
	return l, err
}

// anonymous replaces the identifiers of containers: after a reboot the same Pods
// have others.
func anonymous(line string) string {
	parts := strings.Split(line, "/")
	for i, part := range parts {
		if len(part) == 64 && strings.Trim(part, "0123456789abcdef") == "" {
			parts[i] = "ID"
		}
	}
	return strings.Join(parts, "/")
}

// podCgroups lists a node's cgroups of Pods in one hierarchy: all have the same.
func podCgroups(name string) ([]string, error) {
	dirs, err := hierarchies()
	if err != nil {
		return nil, err
	}
	var found []string
	err = filepath.WalkDir(filepath.Join(dirs[0], name), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "pod") {
			found = append(found, d.Name())
		}
		return err
	})
	return found, err
}

func nonEmpty(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list
}
