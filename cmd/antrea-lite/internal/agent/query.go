package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/health"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/ofclient/ofp"
	"github.com/antrea-lite/podnet/ofclient/podflows"
	"github.com/antrea-lite/podnet/podnet"
)

func (a *agent) registerQueries(mux *http.ServeMux) {
	mux.HandleFunc("GET "+api.PathPorts, a.ports)
	mux.HandleFunc("GET "+api.PathStatus, a.status)
	mux.HandleFunc("GET "+api.PathCheck, a.check)
	mux.HandleFunc("GET "+api.PathFlows, a.flowsOf)
	mux.HandleFunc("GET "+api.PathEvents, a.eventsOf)
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// An error here means that the client has gone.
	_ = json.NewEncoder(w).Encode(v)
}

func (a *agent) ports(w http.ResponseWriter, _ *http.Request) {
	out := []api.Port{}
	waits := a.waits()
	for _, i := range a.net.Interfaces() {
		p := portOf(i)
		if w, ok := waits[i.Key]; ok && i.State == ifstore.StateWaiting {
			p.Waiting, p.WaitingFor, p.WaitingSince, p.Attempts = w.Text, string(w.Cause), w.Since, w.Attempts
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y api.Port) int {
		return strings.Compare(x.Pod+x.ContainerID+x.IfName, y.Pod+y.ContainerID+y.IfName)
	})
	write(w, http.StatusOK, out)
}

// waits is what the interfaces wait for, which is newer than their records.
func (a *agent) waits() map[ifstore.Key]podnet.Wait {
	waits := make(map[ifstore.Key]podnet.Wait)
	for _, w := range a.net.Waits() {
		waits[w.Key] = w
	}
	return waits
}

func portOf(i ifstore.Interface) api.Port {
	p := api.Port{
		Pod: i.Pod.String(), PodUID: i.Pod.UID, ContainerID: i.ContainerID, IfName: i.IfName, Host: i.Name, OFPort: i.OFPort,
		State: string(i.State), Waiting: i.Waiting, VLAN: i.VLAN, MTU: i.MTU, NetNS: i.NetNS, IPAM: i.IPAM,
		Network: i.Extra[extraNetwork], Created: i.Created, MAC: i.MAC.String(),
	}
	for _, a := range i.Addresses {
		p.IPs = append(p.IPs, a.Prefix)
	}
	return p
}

func (a *agent) status(w http.ResponseWriter, r *http.Request) {
	k := a.keeper
	k.mu.Lock()
	out := api.Status{
		Version: a.version, PID: os.Getpid(), Started: a.started,
		Bridge:  api.Bridge{Name: a.conf.Bridge, Datapath: a.conf.Datapath, OVSVersion: k.info.OVSVersion, DBSchema: k.info.DBSchema},
		Gateway: api.Gateway{Name: a.conf.Gateway.Name, OFPort: k.ofport, Addresses: k.state.Addresses, MTU: k.state.MTU},
		Ports:   map[string]int{},
	}
	if k.bridge.DatapathID != 0 {
		out.Bridge.DatapathID = fmt.Sprintf("%016x", k.bridge.DatapathID)
	}
	if !k.state.MAC.IsZero() {
		out.Gateway.MAC = k.state.MAC.String()
	}
	k.mu.Unlock()
	out.Parts = a.health.States()
	out.Ready = a.health.Ready() == nil
	for _, i := range a.net.Interfaces() {
		out.Ports[string(i.State)]++
	}
	db, of := a.ovs.Status(), a.of.Status()
	out.Sessions = api.Sessions{
		OVSDB:    api.Session{Endpoint: a.conf.OVSDB, Ready: db.Connected, Since: db.Since, Reconnects: db.Reconnects, LastError: db.LastError},
		OpenFlow: api.Session{Endpoint: a.conf.OpenFlowEndpoint(), Ready: of.Ready, Since: of.Since, Reconnects: of.Reconnects, LastError: of.LastError},
	}
	usage, err := a.leases.Usage(r.Context())
	if err != nil {
		write(w, http.StatusServiceUnavailable, &cniapi.Error{Code: cniapi.CodeTryAgain, Msg: err.Error()})
		return
	}
	for _, u := range usage {
		out.Ranges = append(out.Ranges, api.Range{Prefix: u.Prefix, Taken: u.Taken, Size: u.Size, Full: u.Full})
	}
	write(w, http.StatusOK, out)
}

// findings words the states of the parts.
func findings(h *health.Health) (out []api.Finding) {
	for _, s := range h.States() {
		f := api.Finding{Level: api.OK, What: "agent: " + s.Name, Found: "well"}
		if !s.OK {
			f.Level, f.Found, f.Remedy = api.Fail, s.Reason, s.Remedy
		}
		out = append(out, f)
	}
	return out
}

// check tells what only the running agent can find out.
func (a *agent) check(w http.ResponseWriter, r *http.Request) {
	out := findings(a.health)
	usage, err := a.leases.Usage(r.Context())
	if err == nil {
		for _, u := range usage {
			f := api.Finding{Level: api.OK, What: "range " + u.Prefix.String(), Found: fmt.Sprintf("%d of %s addresses taken", u.Taken, u.Size)}
			if u.Full {
				f.Level, f.Remedy = api.Fail, "give the node a larger range, or remove Pods"
			}
			out = append(out, f)
		}
	}
	ifaces, waits := a.net.Interfaces(), a.waits()
	var ready []ifstore.Interface
	for _, i := range ifaces {
		switch i.State {
		case ifstore.StateReady:
			ready = append(ready, i)
		case ifstore.StateWaiting:
			out = append(out, api.Finding{Level: api.Warn, What: "Pod " + name(i), Found: "waits for " + cmp.Or(waits[i.Key].Text, i.Waiting), Remedy: "ovs-vsctl list interface " + i.Name + " shows what Open vSwitch says of its port"})
		case ifstore.StateWithdrawing:
			out = append(out, api.Finding{Level: api.Warn, What: "Pod " + name(i), Found: "is being removed", Remedy: "nothing to do while Open vSwitch is away; the removal goes on by itself"})
		}
	}
	if a.of.Status().Ready {
		out = append(out, a.auditFinding(r, ready))
	}
	write(w, http.StatusOK, out)
}

func (a *agent) auditFinding(r *http.Request, ready []ifstore.Interface) api.Finding {
	f := api.Finding{Level: api.OK, What: "flows"}
	missing, stale, err := a.flows.Audit(r.Context(), ready)
	switch {
	case err != nil:
		f.Level, f.Found, f.Remedy = api.Fail, "cannot be read: "+err.Error(), "see that ovs-vswitchd runs"
	case missing+stale > 0:
		f.Level, f.Found = api.Warn, fmt.Sprintf("%d missing and %d that should not be there, for %d interfaces", missing, stale, len(ready))
		f.Remedy = "repeat the check: changes under way count, too; if it stays, restart the agent, which writes all flows anew"
	default:
		f.Found = fmt.Sprintf("as they have to be, for %d interfaces", len(ready))
	}
	return f
}

func name(i ifstore.Interface) string {
	if p := i.Pod.String(); p != "" {
		return p
	}
	return i.Key.String()
}

// asksFor reports whether q means the interface: by Pod, host interface or container.
func asksFor(q string, i ifstore.Interface) bool {
	return i.Pod.String() == q || i.Pod.Name == q || i.Name == q || strings.HasPrefix(i.ContainerID, q)
}

// eventsOf shows the latest events, of all Pods or of those that the query means.
func (a *agent) eventsOf(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query().Get("q")
	host := make(map[ifstore.Key]string)
	for _, i := range a.net.Interfaces() {
		host[i.Key] = i.Name
	}
	out := []api.Event{}
	for _, e := range a.events.list() {
		if q != "" && !asksFor(q, ifstore.Interface{Key: e.Key, Pod: e.Pod, Name: host[e.Key]}) {
			continue
		}
		kind := "Normal"
		if e.Type == podnet.NetworkNotReady {
			kind = "Warning"
		}
		out = append(out, api.Event{Time: e.Time, Type: kind, Reason: string(e.Type), Pod: e.Pod.String(), PodUID: e.Pod.UID,
			ContainerID: e.Key.ContainerID, IfName: e.Key.IfName, Message: e.Message})
	}
	write(w, http.StatusOK, out)
}

// flowsOf shows the flows of one interface as they should be and as the switch has them.
func (a *agent) flowsOf(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query().Get("q")
	var found []ifstore.Interface
	for _, i := range a.net.Interfaces() {
		if q != "" && asksFor(q, i) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		write(w, http.StatusNotFound, &cniapi.Error{Code: cniapi.CodeUnknown, Msg: fmt.Sprintf("no interface of a Pod, host interface or container %q", q), Details: "`antrea-lite ports` lists what there is"})
		return
	}
	out := []api.Flows{}
	for _, i := range found {
		out = append(out, a.oneFlows(r, i))
	}
	write(w, http.StatusOK, out)
}

func (a *agent) oneFlows(r *http.Request, i ifstore.Interface) api.Flows {
	f := api.Flows{Port: portOf(i), Want: []string{}, Switch: []string{}}
	mods, err := a.flows.Flows(i)
	for _, m := range mods {
		f.Want = append(f.Want, m.String())
	}
	if err != nil {
		f.Error = err.Error()
		return f
	}
	if !a.of.Status().Ready {
		f.Error = "the switch is not connected"
		return f
	}
	cookie, mask := podflows.CookieOf(i.Key)
	stats, err := a.of.FlowStats(r.Context(), ofp.FlowStatsRequest{Table: ofp.TableAll, Cookie: cookie, CookieMask: mask})
	if err != nil {
		f.Error = err.Error()
		return f
	}
	slices.SortFunc(stats, func(x, y ofp.FlowStats) int {
		if x.Table != y.Table {
			return int(x.Table) - int(y.Table)
		}
		return int(y.Priority) - int(x.Priority)
	})
	for _, s := range stats {
		f.Switch = append(f.Switch, podflows.TableName(s.Table)+": "+s.String())
	}
	return f
}
