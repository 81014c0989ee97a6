package linux

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"golang.org/x/sys/unix"
)

// Linker makes, checks and removes veth pairs, and plugs in host interfaces
// that others make (Request.HostDevice). It implements podnet.Linker,
// podnet.Announcer and podnet.Prober; its methods may be called concurrently.
// It works in the network namespace in which NewLinker was called, which must
// be that of the process, and needs CAP_NET_ADMIN and CAP_SYS_ADMIN.
type Linker struct {
	cfg  Config
	host nsID

	mu   sync.Mutex
	made map[ifstore.Key]struct{} // linked by this process and not unlinked since
}

var (
	_ podnet.Linker    = (*Linker)(nil)
	_ podnet.Announcer = (*Linker)(nil)
	_ podnet.Prober    = (*Linker)(nil)
)

// NewLinker returns a Linker. It refuses a Config that no interface can have
// with an error that wraps podnet.ErrBadRequest.
func NewLinker(cfg Config) (*Linker, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	fd, err := ownNetNS()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	id, err := identityOf(fd)
	if err != nil {
		return nil, err
	}
	return &Linker{cfg: cfg, host: id, made: make(map[ifstore.Key]struct{})}, nil
}

// Link makes the veth pair of req and configures the container's end. On error
// nothing is left behind. Errors that repeating cannot cure wrap
// podnet.ErrBadRequest; a host name that a stranger or a living interface of
// the same key holds, podnet.ErrPortExists.
func (l *Linker) Link(ctx context.Context, req podnet.Request) (podnet.Link, error) {
	if req.HostDevice != "" {
		return l.linkDevice(ctx, req)
	}
	p, err := newPlan(l.cfg, req)
	if err != nil {
		return podnet.Link{}, err
	}
	ns, err := l.openContainer(p.netNS)
	if err != nil {
		return podnet.Link{}, err
	}
	defer ns.close()
	if err := ctx.Err(); err != nil {
		return podnet.Link{}, context.Cause(ctx)
	}
	host, err := dialRTNL()
	if err != nil {
		return podnet.Link{}, err
	}
	defer host.close()

	pair, err := l.create(host, p, ns)
	if err != nil {
		return podnet.Link{}, err
	}
	err = context.Cause(ctx)
	if err == nil && l.cfg.QuietHost {
		err = quiet(p.host) // before it is up: until then the host hears nothing
	}
	if err == nil {
		err = setUpHostEnd(host, pair.index, p)
	}
	if err == nil {
		err = ns.run(func() error { return setUpContainerEnd(pair.peer, p, l.cfg.DisableTXChecksum) })
	}
	if err != nil {
		return podnet.Link{}, differences{err, remove(host, pair.index)}.err()
	}
	l.mu.Lock()
	l.made[p.key] = struct{}{}
	l.mu.Unlock()
	return podnet.Link{Name: p.host, MAC: p.mac, MTU: p.mtu}, nil
}

// openContainer opens the namespace of a container for Link. The host's own is
// refused: both ends would lie on the host, and the container's configuration with them.
func (l *Linker) openContainer(path string) (*netNS, error) {
	ns, err := openNetNS(path)
	if errors.Is(err, errNetNSGone) {
		return nil, fmt.Errorf("%w: %w", podnet.ErrBadRequest, err)
	}
	if err != nil {
		return nil, err
	}
	if ns.id == l.host {
		ns.close()
		return nil, fmt.Errorf("%w: %q is the host's own network namespace; a container on the host network needs no interface", podnet.ErrBadRequest, path)
	}
	return ns, nil
}
