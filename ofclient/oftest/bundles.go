package oftest

import (
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// idleTimeout is how long Open vSwitch keeps a bundle to which nothing is added.
const idleTimeout = 10 * time.Second

// More codes of ofp.ErrTypeBundleFailed.
const (
	codeClosed   = 4
	codeBadType  = 6
	codeBadFlags = 7
	codeUnsup    = 10
)

func bundleError(code uint16) *ofp.Error {
	return &ofp.Error{ErrType: ofp.ErrTypeBundleFailed, Code: code}
}

// bundle is one open bundle of a session.
type bundle struct {
	xid   uint32 // of the message that opened it
	flags uint16
	ended bool // closed: it can be committed and no more added to
	adds  []add
	idle  *time.Timer
}

type add struct {
	xid uint32
	mod ofp.FlowMod
}

func (s *session) openBundle(id, xid uint32, flags uint16) *bundle {
	b := &bundle{xid: xid, flags: flags}
	b.idle = time.AfterFunc(idleTimeout, func() {
		s.bundleMu.Lock()
		defer s.bundleMu.Unlock()
		if s.bundles[id] == b {
			delete(s.bundles, id)
			s.reply(b.xid, bundleError(ofp.ErrBundleTimeout))
		}
	})
	s.bundles[id] = b
	return b
}

func (s *session) closeBundle(id uint32) {
	if b := s.bundles[id]; b != nil {
		b.idle.Stop()
		delete(s.bundles, id)
	}
}

func (s *session) dropBundles() {
	s.bundleMu.Lock()
	defer s.bundleMu.Unlock()
	for id := range s.bundles {
		s.closeBundle(id)
	}
}

func (s *session) bundleControl(f Faults, xid uint32, m *ofp.BundleControl) {
	s.bundleMu.Lock()
	defer s.bundleMu.Unlock()
	b := s.bundles[m.BundleID]
	switch {
	case m.Kind == ofp.BundleOpenRequest && f.RefuseOpen != nil:
		s.reply(xid, f.RefuseOpen)
		return
	case m.Kind == ofp.BundleOpenRequest && b != nil:
		s.closeBundle(m.BundleID)
		s.reply(xid, bundleError(ofp.ErrBundleBadID))
		return
	case m.Kind == ofp.BundleOpenRequest:
		s.openBundle(m.BundleID, xid, m.Flags)
	case m.Kind != ofp.BundleCloseRequest && m.Kind != ofp.BundleCommitRequest && m.Kind != ofp.BundleDiscardRequest:
		s.reply(xid, bundleError(codeBadType))
		return
	case b == nil:
		s.reply(xid, bundleError(ofp.ErrBundleBadID))
		return
	case b.flags != m.Flags:
		s.closeBundle(m.BundleID)
		s.reply(xid, bundleError(codeBadFlags))
		return
	case m.Kind == ofp.BundleCloseRequest:
		b.ended = true
	default:
		s.closeBundle(m.BundleID)
		if m.Kind == ofp.BundleCommitRequest && !s.commit(f, xid, b) {
			return
		}
	}
	s.reply(xid, &ofp.BundleControl{BundleID: m.BundleID, Kind: m.Kind + 1, Flags: m.Flags})
}

// commit applies a bundle and reports whether its reply is to be sent.
func (s *session) commit(f Faults, xid uint32, b *bundle) bool {
	mods := make([]ofp.FlowMod, len(b.adds))
	for i, a := range b.adds {
		if e := s.sw.judge(f.FailCommit, a.mod); e != nil {
			if !f.HideFault {
				s.reply(a.xid, e)
			}
			s.reply(xid, bundleError(ofp.ErrBundleMessageFailed))
			return false
		}
		mods[i] = a.mod
	}
	if !f.LieCommits {
		s.sw.applyFlows(mods)
	}
	return !f.DropCommits
}

func (s *session) bundleAdd(f Faults, xid uint32, m *ofp.BundleAdd) {
	s.bundleMu.Lock()
	defer s.bundleMu.Unlock()
	b := s.bundles[m.BundleID]
	switch {
	case b == nil:
		b = s.openBundle(m.BundleID, xid, m.Flags) // as Open vSwitch does, without a word
	case b.ended:
		s.closeBundle(m.BundleID)
		s.reply(xid, bundleError(codeClosed))
		return
	case b.flags != m.Flags:
		s.closeBundle(m.BundleID)
		s.reply(xid, bundleError(codeBadFlags))
		return
	}
	b.idle.Reset(idleTimeout)
	mod, ok := m.Inner.(*ofp.FlowMod)
	if !ok {
		s.reply(xid, bundleError(codeUnsup))
		return
	}
	if e := s.sw.judge(f.FailAdd, *mod); e != nil {
		s.reply(xid, e) // and the bundle goes on without it
		return
	}
	b.adds = append(b.adds, add{xid, *mod})
}
