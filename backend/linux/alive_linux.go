package linux

import (
	"context"
	"errors"

	"github.com/antrea-lite/podnet/ifstore"
)

// Alive reports whether the container behind iface still exists: the host's
// end is there and ours, and so is the container's namespace. A device of others
// may come late and go for a while; there the namespace alone counts. false means that
// the kernel said so; what cannot be found out is an error.
func (l *Linker) Alive(_ context.Context, iface ifstore.Interface) (bool, error) {
	if isDevice(iface) {
		return netNSAlive(iface.NetNS)
	}
	c, err := dialRTNL()
	if err != nil {
		return false, err
	}
	defer c.close()
	link, err := lookUp(c, iface.Name)
	switch {
	case errors.Is(err, errNoLink):
		return false, nil
	case err != nil:
		return false, err
	case !owns(link, iface.Name, iface.Key):
		return false, nil
	}
	if iface.NetNS == "" {
		return true, nil // nothing recorded to look at; a veth ends with its peer
	}
	return netNSAlive(iface.NetNS)
}

func netNSAlive(path string) (bool, error) {
	ns, err := openNetNS(path)
	switch {
	case errors.Is(err, errNetNSGone):
		return false, nil
	case err != nil:
		return false, err
	}
	ns.close()
	return true, nil
}
