package windows

import (
	"fmt"
	"strings"

	"github.com/antrea-lite/podnet/podnet"
)

// NetNS is what CNI_NETNS says on Windows. At most one field is set.
type NetNS struct {
	// Namespace is the HNS namespace that the runtime made for a sandbox
	// (containerd).
	Namespace GUID
	// None: the runtime made a container without network and no namespace for
	// it ("none", as Docker's CNI runtimes say for a sandbox).
	None bool
	// Container is the id of the sandbox whose network this container shares
	// ("container:<id>", as Docker's CNI runtimes say for a Pod's other
	// containers).
	Container string
}

const (
	netNSNone      = "none"
	netNSContainer = "container:"
)

// ParseNetNS reads CNI_NETNS: a GUID, "none", "container:<id>" or nothing (a DEL
// whose sandbox is gone), which is the zero NetNS. Anything else is an error that
// wraps podnet.ErrBadRequest; it is never taken for a sandbox's namespace.
func ParseNetNS(s string) (NetNS, error) {
	switch {
	case s == "":
		return NetNS{}, nil
	case s == netNSNone:
		return NetNS{None: true}, nil
	}
	if id, ok := strings.CutPrefix(s, netNSContainer); ok {
		if id == "" || strings.ContainsFunc(id, func(r rune) bool {
			return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_.-", r))
		}) {
			return NetNS{}, fmt.Errorf("%w: network namespace %q does not end in a container id", podnet.ErrBadRequest, s)
		}
		return NetNS{Container: id}, nil
	}
	g, err := ParseGUID(s)
	if err != nil || g.IsZero() {
		return NetNS{}, fmt.Errorf("%w: network namespace %q is neither the GUID of an HNS namespace nor %q nor %q; the container runtime sets CNI_NETNS",
			podnet.ErrBadRequest, s, netNSNone, netNSContainer+"<id>")
	}
	return NetNS{Namespace: g}, nil
}

// String returns the form that ParseNetNS reads. It is the same for every
// spelling of one namespace.
func (n NetNS) String() string {
	switch {
	case !n.Namespace.IsZero():
		return n.Namespace.String()
	case n.None:
		return netNSNone
	case n.Container != "":
		return netNSContainer + n.Container
	}
	return ""
}

// Infra reports whether n is of the sandbox itself, the one container of a Pod
// that gets an interface and addresses.
func (n NetNS) Infra() bool { return !n.Namespace.IsZero() || n.None }
