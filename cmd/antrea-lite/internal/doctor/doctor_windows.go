package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	syswin "golang.org/x/sys/windows"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/agent"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/gateway"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/prepare"
)

// system looks at what the programs run on.
func (r *report) system() {
	v := syswin.RtlGetVersion()
	version := fmt.Sprintf("%d.%d build %d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
	if err := agent.CheckHost(); err != nil {
		r.fail("Windows", version, err.Error())
	} else {
		r.ok("Windows", version)
	}
	if !syswin.GetCurrentProcessToken().IsElevated() {
		r.warn("user", "not elevated", "run the check as administrator; pipes and HNS may not be readable")
	}
}

// socket has nothing to look at: who may open a pipe is said when it is made,
// and cannot be changed by others.
func (r *report) socket(*config.Config) {}

// network looks at the node's own part of the network.
func (r *report) network(ctx context.Context, conf *config.Config, node config.Node, known bool) {
	r.hns(ctx, conf, node)
	if conf.Gateway.Name == "" {
		r.warn("gateway", "none", "Pods reach each other only; docs/windows.md says how to make one")
		return
	}
	want := gateway.Config{Name: conf.Gateway.Name, MTU: conf.MTU}
	for i, p := range node.PodCIDRs {
		want.Addresses = append(want.Addresses, netip.PrefixFrom(node.Gateways[i], p.Bits()))
	}
	state, _, err := gateway.Apply(want) // which changes nothing here
	switch {
	case err != nil && known:
		r.fail("gateway "+conf.Gateway.Name, err.Error(), "")
		return
	case err != nil: // compared with defaults
		r.warn("gateway "+conf.Gateway.Name, err.Error(), "correct the configuration first")
		return
	}
	r.ok("gateway "+conf.Gateway.Name, fmt.Sprintf("up, MTU %d, %s", state.MTU, joinPrefixes(state.Addresses)))
}

// hns looks for the HNS network and for Open vSwitch's extension in its switch.
func (r *report) hns(ctx context.Context, conf *config.Config, node config.Node) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	want := agent.HNSNetwork(conf, node)
	what := "HNS network " + want.Name
	want.Adapter = "" // to find, and never to make
	linker, err := windows.NewLinker(windows.Config{HNS: windows.NewHCN(), Network: want})
	if err != nil {
		r.fail(what, err.Error(), "")
		return
	}
	n, _, err := linker.EnsureNetwork(ctx)
	switch {
	case errors.Is(err, windows.ErrNoNetwork):
		r.fail(what, "there is none", "run `antrea-lite prepare-node`")
		return
	case err != nil:
		r.fail(what, err.Error(), "see that the service hns runs")
		return
	}
	r.ok(what, fmt.Sprintf("%s on adapter %q", n.ID, n.Adapter))
	switch on, err := (prepare.Extension{Caller: prepare.NewHNS()}).Enabled(ctx, n.ID); {
	case err != nil:
		r.warn("Open vSwitch extension", err.Error(), "Get-VMSwitchExtension shows what the switch offers")
	case !on:
		r.fail("Open vSwitch extension", "disabled", "run `antrea-lite prepare-node`")
	default:
		r.ok("Open vSwitch extension", "enabled")
	}
}
