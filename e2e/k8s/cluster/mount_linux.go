package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// mount makes the file systems of new namespaces. The order matters.
func (s spec) mount() error {
	var m mounter
	m.mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	m.mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	m.sysfs(filepath.Join(s.Dir, "cgroup"))
	for _, top := range s.Overlay {
		m.overlay(top, filepath.Join(s.Disk, "overlay"+top))
	}
	m.mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
	for _, path := range s.Binds {
		m.bind(filepath.Join(s.Disk, "own"+path), path)
	}
	for path, content := range s.Files {
		// On the machine it may be a link to somewhere in /run.
		m.do("remove", path, func() error { return ignore(os.Remove(path), os.ErrNotExist) })
		m.do("write", path, func() error { return os.WriteFile(path, []byte(content), 0o644) })
	}
	for name, value := range s.ShownSysctls {
		file := filepath.Join("/run/sysctl", name)
		m.do("write", file, func() error {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				return err
			}
			return os.WriteFile(file, []byte(value+"\n"), 0o644)
		})
		m.mount(file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, "")
	}
	if len(s.Binds) > 0 {
		// Containers' mounts are to be seen by others, as on any node. Not earlier:
		// unmounting one mount point of a shared tree unmounts its peers.
		m.mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
	}
	return m.err
}

// mounter keeps the first error; later calls do nothing.
type mounter struct{ err error }

func (m *mounter) do(verb, path string, f func() error) {
	if m.err != nil {
		return
	}
	if err := f(); err != nil {
		m.err = fmt.Errorf("%s %s: %w", verb, path, err)
	}
}

func (m *mounter) mount(source, target, kind string, flags uintptr, data string) {
	m.do("mount", target, func() error { return unix.Mount(source, target, kind, flags, data) })
}

func (m *mounter) mkdir(path string) {
	m.do("make", path, func() error { return os.MkdirAll(path, 0o755) })
}

func (m *mounter) bind(source, target string) {
	m.mkdir(source)
	m.mkdir(target)
	m.mount(source, target, "", unix.MS_BIND, "")
}

// overlay lets target be written to without changing what is below it.
func (m *mounter) overlay(target, dir string) {
	upper, work := filepath.Join(dir, "upper"), filepath.Join(dir, "work")
	m.mkdir(upper)
	m.mkdir(work)
	m.mount("overlay", target, "overlay", 0, fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", target, upper, work))
}

// sysfs mounts the /sys of the new network namespace, with the machine's cgroups
// put back into it.
func (m *mounter) sysfs(aside string) {
	const cgroups = "/sys/fs/cgroup"
	m.mkdir(aside)
	m.mount(cgroups, aside, "", unix.MS_BIND|unix.MS_REC, "")
	m.mount("sysfs", "/sys", "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	m.mount(aside, cgroups, "", unix.MS_BIND|unix.MS_REC, "")
	m.do("unmount", aside, func() error { return unix.Unmount(aside, unix.MNT_DETACH) })
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
