package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/agent"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/vswitch"
)

// askTime bounds each question to a daemon.
const askTime = 3 * time.Second

// report collects findings.
type report []api.Finding

func (r *report) ok(what, found string) {
	*r = append(*r, api.Finding{Level: api.OK, What: what, Found: found})
}

func (r *report) warn(what, found, remedy string) {
	*r = append(*r, api.Finding{Level: api.Warn, What: what, Found: found, Remedy: remedy})
}

func (r *report) fail(what, found, remedy string) {
	*r = append(*r, api.Finding{Level: api.Fail, What: what, Found: found, Remedy: remedy})
}

// Check looks at everything. loadErr is why the configuration could not be
// read; the defaults are looked at then.
func Check(ctx context.Context, conf *config.Config, loadErr error) []api.Finding {
	var r report
	node, err := conf.Check()
	switch {
	case loadErr != nil:
		r.fail("configuration", loadErr.Error(), "the rest of this check uses the defaults")
	case err != nil:
		r.fail("configuration", err.Error(), "")
	default:
		r.ok("configuration", fmt.Sprintf("Pod ranges %s", joinPrefixes(node.PodCIDRs)))
	}
	r.system()
	running := r.agent(ctx, conf)
	r.ovs(ctx, conf, running)
	r.network(ctx, conf, node, err == nil)
	return r
}

// agent asks the running agent for what only it knows.
func (r *report) agent(ctx context.Context, conf *config.Config) (running bool) {
	ctx, cancel := context.WithTimeout(ctx, 3*askTime)
	defer cancel()
	client := api.NewClient(conf.CNISocket)
	var s api.Status
	if err := client.Get(ctx, api.PathStatus, url.Values{}, &s); err != nil {
		if errors.Is(err, api.ErrNoAgent) {
			r.fail("agent", err.Error(), "")
		} else {
			r.fail("agent", err.Error(), "see its log")
		}
		return false
	}
	r.ok("agent", fmt.Sprintf("version %s, pid %d", s.Version, s.PID))
	r.socket(conf)
	var findings []api.Finding
	if err := client.Get(ctx, api.PathCheck, url.Values{}, &findings); err != nil {
		r.fail("agent", err.Error(), "see its log")
		return true
	}
	*r = append(*r, findings...)
	return true
}

// ovs looks at Open vSwitch itself, as the agent would.
func (r *report) ovs(ctx context.Context, conf *config.Config, running bool) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	client, err := vswitch.New(agent.OVSDB(conf))
	if err != nil {
		r.fail("OVSDB", err.Error(), "")
		return
	}
	done := make(chan struct{})
	runCtx, stop := context.WithCancel(ctx)
	go func() {
		defer close(done)
		// Its error is that of the questions below.
		_ = client.Run(runCtx)
	}()
	defer func() { stop(); <-done }()
	info, err := client.Info(ctx)
	if err != nil {
		cause := err.Error()
		if last := client.Status().LastError; last != "" {
			cause = last
		}
		r.fail("OVSDB", conf.OVSDB+": "+cause, "start ovsdb-server, or correct ovsdb in the configuration")
		return
	}
	r.version(info)
	if len(info.DatapathTypes) > 0 && !slices.Contains(info.DatapathTypes, conf.Datapath) {
		r.fail("datapath", conf.Datapath+" is none of "+strings.Join(info.DatapathTypes, ", "), "load the kernel module openvswitch, or use datapath: netdev")
	}
	ports, err := client.Ports(ctx)
	switch {
	case err != nil && running:
		r.fail("bridge", err.Error(), "the agent makes it; see its log")
	case err != nil:
		r.warn("bridge", err.Error(), "the agent makes it when it starts")
	default:
		r.ok("bridge", fmt.Sprintf("%s with %d ports", conf.Bridge, len(ports)))
		for _, p := range ports {
			if p.Error != "" {
				r.warn("port "+p.Name, p.Error, "if its Pod is gone the agent removes it; else see ovs-vswitchd's log")
			}
		}
	}
	r.openflow(ctx, conf, "start ovs-vswitchd; the socket appears with the bridge")
}

func (r *report) version(info vswitch.Info) {
	switch err := agent.OVSTooOld(info); {
	case err != nil:
		r.fail("Open vSwitch", err.Error(), "")
	case info.OVSVersion == "":
		r.ok("Open vSwitch", "version not recorded, schema "+info.DBSchema)
	case agent.Older(info.OVSVersion, agent.GoodCTFlush):
		r.warn("Open vSwitch", info.OVSVersion, "tracked connections of a removed Pod stay until they expire; "+agent.GoodCTFlush+" and later delete them")
	default:
		r.ok("Open vSwitch", info.OVSVersion+", schema "+info.DBSchema)
	}
}

func (r *report) openflow(ctx context.Context, conf *config.Config, remedy string) {
	conn, err := agent.OpenFlow(conf)(ctx)
	if err != nil {
		r.fail("OpenFlow", err.Error(), remedy)
		return
	}
	conn.Close()
	r.ok("OpenFlow", conf.OpenFlowEndpoint())
}

func joinPrefixes(list []netip.Prefix) string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = p.String()
	}
	return strings.Join(out, ", ")
}
