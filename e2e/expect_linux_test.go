package e2e

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/antrea-lite/podnet/e2e/lab"
)

const (
	// patience is how long something that must happen may take, on a slow emulated machine too.
	patience = 60 * time.Second
	// pingTime is how long a reply that must come may take.
	pingTime = 2 * time.Second
	// silence is how long a reply that must not come is waited for.
	silence = 500 * time.Millisecond
)

// settled waits until check is content.
func (n *node) settled(what string, check func() error) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := lab.Until(ctx, check); err != nil {
		n.t.Errorf("%s: %v", what, err)
	}
}

// pings demands that ONE ping of every given pair is answered in each direction and family they share.
func (n *node) pings(pods ...*lab.Pod) {
	n.t.Helper()
	for _, a := range pods {
		for _, b := range pods {
			for _, v6 := range []bool{false, true} {
				if a == b || !a.Addr(v6).IsValid() || !b.Addr(v6).IsValid() {
					continue
				}
				if _, err := lab.Ping(a.NetNS, a.Addr(v6), b.Addr(v6), 56, pingTime); err != nil {
					n.t.Errorf("%s -> %s: %v", a.Name, b.Name, err)
				}
			}
		}
	}
}

// pingsGateway demands an answered ping between a Pod and the host in both directions.
func (n *node) pingsGateway(p *lab.Pod) {
	n.t.Helper()
	for _, v6 := range []bool{false, true} {
		if !p.Addr(v6).IsValid() {
			continue
		}
		if _, err := lab.Ping(p.NetNS, p.Addr(v6), p.Gateway(v6), 56, pingTime); err != nil {
			n.t.Errorf("%s -> gateway: %v", p.Name, err)
		}
		if _, err := lab.Ping(lab.Host, p.Gateway(v6), p.Addr(v6), 56, pingTime); err != nil {
			n.t.Errorf("gateway -> %s: %v", p.Name, err)
		}
	}
}

// regainsGateway demands that Pod and gateway reach each other again after
// ovs-vswitchd came back, in each family. A single ping is no verdict then: what
// the Pod sent before its flows were in (IPv6 sends reports by itself) was
// dropped, and the datapath remembers that for all IPv6 of the port until Open
// vSwitch looks at its cache again, which may take it half a second.
func (n *node) regainsGateway(p *lab.Pod) {
	n.t.Helper()
	for _, v6 := range []bool{false, true} {
		if !p.Addr(v6).IsValid() {
			continue
		}
		n.settled(p.Name+" and gateway reach each other again", func() error {
			_, there := lab.Ping(p.NetNS, p.Addr(v6), p.Gateway(v6), 56, pingTime)
			_, back := lab.Ping(lab.Host, p.Gateway(v6), p.Addr(v6), 56, pingTime)
			return errors.Join(there, back)
		})
	}
}

// silent demands that a ping gets no answer.
func (n *node) silent(from lab.Endpoint, to netip.Addr) {
	n.t.Helper()
	if _, err := lab.Ping(from.NS, from.Addr, to, 56, silence); err == nil {
		n.t.Errorf("%s -> %s: answered, want none", from.Addr, to)
	}
}

// sends demands a checksummed TCP transfer.
func (n *node) sends(from, to lab.Endpoint, size int64) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	if _, err := lab.SendTCP(ctx, from, to, size); err != nil {
		n.t.Error(err)
	}
}

// wantError demands a CNI error of a code whose text holds every word.
func (n *node) wantError(what string, err error, code uint, words ...string) {
	n.t.Helper()
	var e *types.Error
	if !errors.As(err, &e) {
		n.t.Errorf("%s: error %v, want a CNI error of code %d", what, err, code)
		return
	}
	if e.Code != code {
		n.t.Errorf("%s: code %d, want %d: %s; %s", what, e.Code, code, e.Msg, e.Details)
	}
	for _, w := range words {
		if !strings.Contains(e.Msg+"; "+e.Details, w) {
			n.t.Errorf("%s: %q does not name %q", what, e.Msg+"; "+e.Details, w)
		}
	}
	if e.Details == "" {
		n.t.Errorf("%s: %q says no remedy", what, e.Msg)
	}
}
