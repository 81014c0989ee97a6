package ipam

import "os"

// stampName holds the boot's id. It is not the lock file, which on Windows nobody
// can read while it is locked.
const stampName = "boot"

// fsync does nothing: a handle opened for reading cannot be flushed on
// Windows, and NTFS keeps its directories in a journal.
func fsync(*os.File) error { return nil }
