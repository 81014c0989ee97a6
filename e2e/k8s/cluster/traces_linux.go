package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
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
