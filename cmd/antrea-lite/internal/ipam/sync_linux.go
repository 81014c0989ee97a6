package ipam

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// stampName holds the boot's id: the lock file, which host-local leaves empty.
const stampName = lockName

// fsync flushes a file or a directory. A file system that cannot flush
// directories says EINVAL; there is nothing more to do then.
func fsync(f *os.File) error {
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
