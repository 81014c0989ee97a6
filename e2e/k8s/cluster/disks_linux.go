package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// diskSize is what a node may need on its disk: images, twice, and what some
// hundred containers write.
const diskSize = 2 << 30

// makeDisks makes the directory of the nodes' disks and returns its name.
//
// containerd waits for the disk with every image and every container that it
// makes, and on many a virtual machine that is most of the time a Pod takes to
// start. A cluster that lives for minutes need not survive a power cut.
func (c *Cluster) makeDisks() (string, error) {
	roomy, err := roomyMemory(int64(len(c.nodes)) * diskSize)
	if err != nil {
		return "", err
	}
	if !roomy {
		return c.cfg.Dir, nil
	}
	dir := filepath.Join(sharedMemory, c.name())
	// Left by a cluster whose own directory was removed by hand.
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.Mkdir(dir, 0o755)
}

// sharedMemory is the tmpfs that every Linux has.
const sharedMemory = "/dev/shm"

// roomyMemory tells whether the shared memory takes so many bytes and the machine
// has as much left then.
func roomyMemory(need int64) (bool, error) {
	var s unix.Statfs_t
	err := unix.Statfs(sharedMemory, &s)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("statfs %s: %w", sharedMemory, err)
	}
	if s.Type != unix.TMPFS_MAGIC || int64(s.Bavail)*s.Bsize < need {
		return false, nil
	}
	available, err := availableMemory()
	return available >= 2*need, err
}

// availableMemory is what processes could get without swapping.
func availableMemory() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			var kib int64
			_, err := fmt.Sscanf(rest, "%d kB", &kib)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}
