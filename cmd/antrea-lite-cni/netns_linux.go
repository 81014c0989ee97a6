package main

import (
	"fmt"

	"github.com/containernetworking/cni/pkg/ns"
	"github.com/containernetworking/cni/pkg/types"
	"golang.org/x/sys/unix"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// checkNetNS refuses a namespace that is none, and the host's own, before
// anything is made.
func checkNetNS(path string) error {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return types.NewError(cniapi.CodeNetNS, fmt.Sprintf("CNI_NETNS %q cannot be opened: %v", path, err), "the sandbox has ended, or the path is wrong; the runtime makes a new one")
	}
	if fs.Type != unix.NSFS_MAGIC {
		return types.NewError(cniapi.CodeNetNS, fmt.Sprintf("CNI_NETNS %q is no network namespace", path), "the namespace was unmounted, or the path is wrong; the runtime makes a new one")
	}
	same, err := ns.CheckNetNS(path)
	if err != nil {
		return err
	}
	if same {
		return types.NewError(cniapi.CodeNetNS, fmt.Sprintf("CNI_NETNS %q is the network namespace of the host", path), "name the container's own")
	}
	return nil
}

// sharesNetwork tells that the container has the network of another. On Linux
// runtimes ask only once for each network namespace.
func sharesNetwork(string) bool { return false }
