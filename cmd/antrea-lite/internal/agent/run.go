package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
)

// run runs the parts. In a cluster the CNI socket and the page are served from the
// first moment on: a node that waits for its API server is alive, and says what it waits for.
// The CNI server ends first, while its calls can still reach Open vSwitch; then
// the rest.
func (a *agent) run(ctx context.Context, listener, page net.Listener) (err error) {
	boot, err := bootStamp(a.conf)
	if err != nil {
		return err
	}
	conf := newCNIConf(a.conf, boot)
	if err := conf.removeOld(); err != nil {
		return err
	}
	base, stopBase := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBase()
	group, base := errgroup.WithContext(base)
	serving, stopServing := context.WithCancel(base)
	defer stopServing()
	defer context.AfterFunc(ctx, stopServing)()

	part := func(name string, run func(context.Context) error) {
		group.Go(func() error {
			logger := klog.FromContext(base).WithValues("part", name)
			if err := run(klog.NewContext(base, logger)); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	joining := newJoining(a)
	calls, pages := newHandoff(joining.socketHandler()), newHandoff(joining.pageHandler())
	served := false
	serveAll := func() {
		served = true
		group.Go(func() error {
			defer stopBase()
			return serve(serving, listener, calls)
		})
		if page != nil {
			part("health page", func(ctx context.Context) error { return serve(ctx, page, pages) })
		}
	}
	if a.conf.Kubernetes.NodeName != "" {
		serveAll() // else there is nothing to wait for
	}
	klog.FromContext(ctx).Info("Agent started", "version", a.version, "pid", os.Getpid(), "bridge", a.conf.Bridge, "socket", a.conf.CNISocket)
	if a.early, err = a.earlyParts(); err == nil {
		for _, h := range a.early {
			part(h.name, h.run)
		}
		err = a.make(serving, joining)
	}
	if a.leases != nil {
		defer func() { err = errors.Join(err, a.leases.Close()) }()
	}
	if err == nil {
		err = a.startParts(part, conf)
	}
	if err == nil {
		calls.set(a.socketHandler())
		pages.set(a.pageHandler(a.health))
	} else if serving.Err() != nil {
		err = nil // told to end, or a server failed, which the group tells
	}
	switch {
	case err != nil && served:
		stopServing()
	case err != nil:
		stopBase()
	case !served:
		serveAll()
	}
	err = errors.Join(err, group.Wait())
	klog.FromContext(ctx).Info("Agent ended", "err", err)
	return err
}

// startParts starts what a.make made.
func (a *agent) startParts(part func(string, func(context.Context) error), conf *cniConf) error {
	part("ovsdb", a.ovs.Run)
	part("bridge and gateway", a.keeper.Run)
	part("gateway watch", a.keeper.watchKernel)
	part("gateway port", func(ctx context.Context) error {
		w := a.ovs.WatchOFPorts()
		defer w.Close()
		return a.keeper.watchPort(ctx, w)
	})
	for _, h := range a.host {
		part(h.name, h.run)
	}
	part("interfaces", a.restore)
	part("openflow", func(ctx context.Context) error { return after(ctx, a.keeper.numbered, a.of.Run) })
	part("audit", a.audit)
	part("events", a.events.Run)
	part("network", func(ctx context.Context) error { return after(ctx, a.keeper.numbered, a.net.Run) })
	if a.conf.CNIConfDir != "" {
		part("CNI configuration", func(ctx context.Context) error { return a.announce(ctx, conf) })
	}
	return a.clusterParts(part)
}

// after runs next once ready is closed.
func after(ctx context.Context, ready <-chan struct{}, next func(context.Context) error) error {
	select {
	case <-ready:
		return next(ctx)
	case <-ctx.Done():
		return nil
	}
}
