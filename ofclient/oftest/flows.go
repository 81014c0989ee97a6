package oftest

import (
	"cmp"
	"slices"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// flowTable holds the flows by what makes a flow the same flow: an add of the
// same key replaces it, whatever its cookie.
type flowTable map[ofp.FlowKey]ofp.FlowMod

// Flows returns the flows as FlowMods with FlowAdd, ordered by table, falling
// priority and match.
func (s *Switch) Flows() []ofp.FlowMod {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.flows.list()
}

// SetFlows replaces the whole table, as if an earlier run had left it.
func (s *Switch) SetFlows(mods []ofp.FlowMod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows = make(flowTable)
	for _, m := range mods {
		s.flows.apply(m)
	}
}

func (s *Switch) applyFlows(mods []ofp.FlowMod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range mods {
		s.flows.apply(m)
	}
}

func (t flowTable) list() []ofp.FlowMod {
	keys := make([]ofp.FlowKey, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b ofp.FlowKey) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Match, b.Match))
	})
	mods := make([]ofp.FlowMod, len(keys))
	for i, k := range keys {
		mods[i] = t[k]
	}
	return mods
}

func (t flowTable) apply(m ofp.FlowMod) {
	strict := m.Command == ofp.FlowDeleteStrict || m.Command == ofp.FlowModifyStrict
	switch m.Command {
	case ofp.FlowAdd:
		m.CookieMask, m.OutPort, m.OutGroup = 0, 0, 0
		t[m.Key()] = m
	case ofp.FlowDelete, ofp.FlowDeleteStrict:
		for k, f := range t {
			if selects(&m, strict, k, &f) {
				delete(t, k)
			}
		}
	case ofp.FlowModify, ofp.FlowModifyStrict:
		for k, f := range t {
			if selects(&m, strict, k, &f) {
				f.Instructions = m.Instructions
				t[k] = f
			}
		}
	}
}

// selects reports whether a change or a question m is about flow f.
func selects(m *ofp.FlowMod, strict bool, k ofp.FlowKey, f *ofp.FlowMod) bool {
	if m.Table != ofp.TableAll && m.Table != f.Table {
		return false
	}
	if f.Cookie&m.CookieMask != m.Cookie&m.CookieMask {
		return false
	}
	if strict {
		return m.Priority == f.Priority && m.Match.Key() == k.Match
	}
	return covers(m.Match, f.Match)
}

// covers reports whether every field of wide is in narrow with at least its bits.
func covers(wide, narrow ofp.Match) bool {
	for _, w := range wide {
		i := slices.IndexFunc(narrow, func(n ofp.Field) bool { return n.ID() == w.ID() })
		if i < 0 || !fieldCovers(w, narrow[i]) {
			return false
		}
	}
	return true
}

func fieldCovers(wide, narrow ofp.Field) bool {
	wv, nv := wide.Value(), narrow.Value()
	wm, nm := mask(wide), mask(narrow)
	for i := range wv {
		if nm[i]&wm[i] != wm[i] || nv[i]&wm[i] != wv[i]&wm[i] {
			return false
		}
	}
	return true
}

func mask(f ofp.Field) []byte {
	if m := f.Mask(); m != nil {
		return m
	}
	return slices.Repeat([]byte{0xff}, len(f.Value()))
}

// listFlows answers a statistics request, in parts of at most 50 flows.
func (s *session) listFlows(xid uint32, req *ofp.FlowStatsRequest) {
	question := &ofp.FlowMod{Table: req.Table, Cookie: req.Cookie, CookieMask: req.CookieMask, Match: req.Match}
	var flows []ofp.FlowStats
	for _, f := range s.sw.Flows() {
		if selects(question, false, ofp.FlowKey{}, &f) {
			flows = append(flows, ofp.FlowStats{Table: f.Table, Priority: f.Priority, Cookie: f.Cookie, Flags: f.Flags,
				IdleTimeout: f.IdleTimeout, HardTimeout: f.HardTimeout, Match: f.Match, Instructions: f.Instructions})
		}
	}
	for {
		n := min(50, len(flows))
		more := n < len(flows)
		s.reply(xid, &ofp.FlowStatsReply{Flows: flows[:n], More: more})
		if !more {
			return
		}
		flows = flows[n:]
	}
}
