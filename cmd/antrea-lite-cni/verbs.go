package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// start reads what every verb needs.
func (p *plugin) start(a *skel.CmdArgs) (*netConf, *cniapi.Request, error) {
	conf, err := parseNetConf(a.StdinData)
	if err != nil {
		return nil, nil, err
	}
	p.version = conf.CNIVersion
	return conf, &cniapi.Request{
		Attachment:    cniapi.Attachment{ContainerID: a.ContainerID, IfName: a.IfName},
		NetNS:         a.Netns,
		Network:       conf.Name,
		VLAN:          conf.VLAN,
		MTU:           conf.MTU,
		IPAM:          conf.owner(),
		TimeoutMillis: conf.timeout().Milliseconds(),
	}, nil
}

func (p *plugin) add(ctx context.Context, a *skel.CmdArgs) (err error) {
	conf, req, err := p.start(a)
	if err != nil {
		return err
	}
	if err := conf.validate(); err != nil {
		return err
	}
	if err := checkNetNS(a.Netns); err != nil {
		return err
	}
	args, err := parseArgs(a.Args)
	if err != nil {
		return err
	}
	req.Pod, req.HostDevice = args.pod, conf.hostDevice()
	if req.WantIPs, req.MAC, err = pick(conf, args); err != nil {
		return err
	}
	prev, err := parsePrev(conf)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, conf.timeout())
	defer cancel()

	dns := conf.resolver()
	if name := conf.delegateFor(a.Netns); name != "" {
		if _, err := findPlugin(name, a.Path); err != nil {
			return err
		}
		given, err := delegateAdd(ctx, name, a)
		// The delegated plugin may have reserved before it failed or its answer was refused.
		p.undo = func() { delegateUndo(ctx, name, a) }
		if err != nil {
			p.takeBack(ctx, conf, req)
			return err
		}
		req.Addresses, req.Routes, req.WantIPs = given.addresses, given.routes, nil
		if dns.IsEmpty() {
			dns = given.dns
		}
	}
	if req.DNS, err = wireDNS(dns); err != nil {
		p.takeBack(ctx, conf, req)
		return err
	}
	var iface cniapi.Interface
	call, err := cniapi.Do(ctx, conf.AgentSocket, cniapi.PathAdd, req, &iface)
	if err != nil {
		p.takeBack(ctx, conf, req)
		return wire(err)
	}
	p.call, p.result = call, buildResult(req, &iface, dns, prev)
	return nil
}

// takeBack returns what the delegated plugin gave to an ADD that failed, unless
// the interface stands by an earlier ADD: a repeat fails, in the IPAM plugin
// (host-local refuses it) or in the agent, and the address is in use.
func (p *plugin) takeBack(ctx context.Context, conf *netConf, req *cniapi.Request) {
	if p.undo == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	err := ask(ctx, conf, cniapi.PathCheck, &cniapi.Request{Attachment: req.Attachment, TimeoutMillis: undoTimeout.Milliseconds()})
	var e *types.Error
	if err == nil || errors.As(err, &e) && e.Code == cniapi.CodeCheck {
		return
	}
	p.undo()
}

func (p *plugin) check(ctx context.Context, a *skel.CmdArgs) error {
	conf, req, err := p.start(a)
	if err != nil {
		return err
	}
	prev, err := parsePrev(conf)
	if err != nil {
		return err
	}
	if prev == nil {
		return types.NewError(cniapi.CodeConfig, "CHECK needs prevResult, the result of ADD, in the network configuration", "the container runtime has to add it")
	}
	if req.Want, err = wanted(prev, a.IfName, a.Netns); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, conf.timeout())
	defer cancel()
	if name := conf.delegateFor(a.Netns); name != "" {
		if err := delegateRun(ctx, name, "CHECK", a); err != nil {
			return err
		}
	}
	return ask(ctx, conf, cniapi.PathCheck, req)
}

// del frees the address last: as long as the agent may have flows for it, nobody else may get it.
func (p *plugin) del(ctx context.Context, a *skel.CmdArgs) error {
	conf, req, err := p.start(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, conf.timeout())
	defer cancel()
	if err := ask(ctx, conf, cniapi.PathDelete, req); err != nil {
		return err
	}
	if name := conf.delegateFor(a.Netns); name != "" {
		return delegateRun(ctx, name, "DEL", a)
	}
	return nil
}

func (p *plugin) gc(ctx context.Context, a *skel.CmdArgs) error {
	conf, req, err := p.start(a)
	if err != nil {
		return err
	}
	if conf.Valid == nil {
		return types.NewError(cniapi.CodeConfig, "GC needs cni.dev/valid-attachments in the network configuration", "the container runtime has to add it; an empty list removes everything of this network")
	}
	for _, v := range *conf.Valid {
		req.Valid = append(req.Valid, cniapi.Attachment{ContainerID: v.ContainerID, IfName: v.IfName})
	}
	ctx, cancel := context.WithTimeout(ctx, conf.timeout())
	defer cancel()
	if err := ask(ctx, conf, cniapi.PathGC, req); err != nil {
		return err
	}
	if name := conf.delegate(); name != "" {
		return delegateRun(ctx, name, "GC", a)
	}
	return nil
}

func (p *plugin) status(ctx context.Context, a *skel.CmdArgs) error {
	conf, req, err := p.start(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, conf.timeout())
	defer cancel()
	if err := ask(ctx, conf, cniapi.PathStatus, req); err != nil {
		if conf.readyLately(time.Now()) {
			return nil
		}
		var e *types.Error
		if errors.As(err, &e) && e.Code == cniapi.CodeTryAgain {
			e.Code = cniapi.CodeUnavailable // the specification's word for it in STATUS
		}
		return err
	}
	if name := conf.delegate(); name != "" {
		return delegateRun(ctx, name, "STATUS", a)
	}
	return nil
}

// readyLately tells whether the agent could serve ADDs less than the grace ago.
// A node that says no in STATUS becomes NotReady and loses its place in Services;
// a restart of the agent or the switch is no reason for that.
func (c *netConf) readyLately(now time.Time) bool {
	if c.StatusGraceSeconds <= 0 || c.ReadyFile == "" {
		return false
	}
	info, err := os.Stat(c.ReadyFile)
	if err != nil {
		return false
	}
	// A clock that was set back makes the time lie ahead, for as long as it likes.
	grace := time.Duration(c.StatusGraceSeconds) * time.Second
	ago := now.Sub(info.ModTime())
	return -grace < ago && ago < grace
}

// ask makes a call that has no answer but success.
func ask(ctx context.Context, conf *netConf, path string, req *cniapi.Request) error {
	call, err := cniapi.Do(ctx, conf.AgentSocket, path, req, nil)
	if err != nil {
		return wire(err)
	}
	call.Close()
	return nil
}
