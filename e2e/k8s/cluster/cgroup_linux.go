package cluster

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// name begins what the cluster has outside of its directory: clusters of
// different directories may run at the same time.
func (c *Cluster) name() string {
	h := fnv.New32a()
	h.Write([]byte(c.cfg.Dir))
	return fmt.Sprintf("kube-%08x", h.Sum32())
}

// cgroup is the name of a node's cgroup in every hierarchy.
func (c *Cluster) cgroup(n *Node) string { return c.name() + "-" + n.Name }

// hierarchies are the directories below which cgroups are made: the one of
// cgroup v2, or those of v1 that have a controller, or a name as systemd's.
func hierarchies() ([]string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &fs); err != nil {
		return nil, fmt.Errorf("%s: %w", cgroupRoot, err)
	}
	if fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{cgroupRoot}, nil
	}
	entries, err := os.ReadDir(cgroupRoot)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		dir := filepath.Join(cgroupRoot, e.Name())
		if err := unix.Statfs(dir, &fs); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		// Two controllers of one hierarchy have a link each.
		if e.IsDir() && fs.Type == unix.CGROUP_SUPER_MAGIC {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("%s has no cgroups: mount cgroup2 there", cgroupRoot)
	}
	return dirs, nil
}

// makeCgroups makes a node's cgroup. The kubelet demands it and makes those below it.
func makeCgroups(name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := delegate(dir, path); err != nil {
			return err
		}
	}
	return nil
}

// delegate gives a new cgroup what it does not inherit: processors and memory
// nodes in v1's cpuset, controllers in v2.
func delegate(parent, path string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) || err == nil && parent == cgroupRoot {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(path, file), value, 0)
		}
		if err != nil {
			return err
		}
	}
	controllers, err := os.ReadFile(filepath.Join(parent, "cgroup.controllers"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, dir := range []string{parent, path} {
		for _, name := range strings.Fields(string(controllers)) {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+name), 0); err != nil {
				return fmt.Errorf("delegate %s below %s: %w", name, dir, err)
			}
		}
	}
	return nil
}

// removeCgroups removes a node's cgroups; its processes have been killed.
func removeCgroups(name string) error {
	dirs, err := hierarchies()
	if err != nil {
		return err
	}
	// containerd may have made some in the v2 hierarchy beside v1's.
	dirs = append(dirs, filepath.Join(cgroupRoot, "unified"))
	for _, dir := range dirs {
		if err := removeTree(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a cgroup and those below it, the innermost first. The last
// processes may be dying still.
func removeTree(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(filepath.Join(path, e.Name())); err != nil {
				return err
			}
		}
	}
	for deadline := time.Now().Add(stopTime); ; time.Sleep(10 * time.Millisecond) {
		// Not os.Remove, which tries to unlink first and may report that.
		err = unix.Rmdir(path)
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			break
		}
	}
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("remove cgroup %s: %w", path, err)
	}
	return nil
}
