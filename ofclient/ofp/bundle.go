package ofp

import (
	"errors"
	"fmt"
)

// BundleKind says what a BundleControl asks or answers.
type BundleKind uint16

// The kinds of BundleControl. A reply's number is its request's plus one.
const (
	BundleOpenRequest    BundleKind = 0
	BundleOpenReply      BundleKind = 1
	BundleCloseRequest   BundleKind = 2
	BundleCloseReply     BundleKind = 3
	BundleCommitRequest  BundleKind = 4
	BundleCommitReply    BundleKind = 5
	BundleDiscardRequest BundleKind = 6
	BundleDiscardReply   BundleKind = 7
)

// String returns the word that ovs-ofctl prints.
func (k BundleKind) String() string {
	names := [...]string{"OPEN_REQUEST", "OPEN_REPLY", "CLOSE_REQUEST", "CLOSE_REPLY",
		"COMMIT_REQUEST", "COMMIT_REPLY", "DISCARD_REQUEST", "DISCARD_REPLY"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", uint16(k))
}

// Flags of a bundle; every message of one bundle must carry the same.
const (
	BundleAtomic  uint16 = 1 << 0 // packets see all of it or nothing
	BundleOrdered uint16 = 1 << 1 // messages apply in the order of the adds
)

// BundleControl opens, closes, commits or discards a bundle, or answers that.
type BundleControl struct {
	BundleID uint32
	Kind     BundleKind
	Flags    uint16
}

// BundleAdd puts a message into an open bundle. Its inner message carries the
// xid of the outer one: Append writes both, Decode refuses a frame where they
// differ. On OVS a BundleAdd to a bundle that is not open opens a new one in
// silence, also after the old one of that id has died of its 10 s timeout.
type BundleAdd struct {
	BundleID uint32
	Flags    uint16
	Inner    Message
}

// Type returns TypeBundleControl.
func (*BundleControl) Type() Type { return TypeBundleControl }

// Type returns TypeBundleAdd.
func (*BundleAdd) Type() Type { return TypeBundleAdd }

func (m *BundleControl) appendBody(b []byte) ([]byte, error) {
	b = put32(b, m.BundleID)
	b = put16(b, uint16(m.Kind))
	return put16(b, m.Flags), nil
}

func (m *BundleControl) decodeBody(_ Header, r *reader) error {
	m.BundleID = r.u32("bundle_id")
	m.Kind = BundleKind(r.u16("type"))
	m.Flags = r.u16("flags")
	return skipProperties(r, "bundle property")
}

func (*BundleAdd) appendBody([]byte) ([]byte, error) {
	return nil, errors.New("the inner message needs the xid of the outer one")
}

func (m *BundleAdd) appendWithXID(b []byte, xid uint32) ([]byte, error) {
	if m.Inner != nil && m.Inner.Type() == TypeBundleAdd {
		return nil, errors.New("a bundle cannot hold a bundle")
	}
	b = put32(b, m.BundleID)
	b = put16(b, 0)
	b = put16(b, m.Flags)
	return Append(b, xid, m.Inner)
}

func (m *BundleAdd) decodeBody(h Header, r *reader) error {
	m.BundleID = r.u32("bundle_id")
	r.skip(2, "padding")
	m.Flags = r.u16("flags")
	if r.err != nil {
		return r.err
	}
	inner, err := ParseHeader(r.b)
	if err != nil {
		return fmt.Errorf("inner message: %w", err)
	}
	if inner.Type == TypeBundleAdd {
		return errors.New("inner message: a bundle cannot hold a bundle")
	}
	if inner.XID != h.XID {
		return fmt.Errorf("inner message: xid %#x differs from the outer %#x", inner.XID, h.XID)
	}
	c := r.cut(int(inner.Length), "inner message")
	if r.err != nil {
		return r.err
	}
	if m.Inner, err = decode(inner, c.b); err != nil {
		return fmt.Errorf("inner %s: %w", inner.Type, err)
	}
	if r.more() {
		r.skip(pad8(int(inner.Length))-int(inner.Length), "inner message padding")
	}
	return skipProperties(r, "bundle property")
}

// skipProperties reads properties to the end of r for their lengths alone.
func skipProperties(r *reader, what string) error {
	for r.more() {
		r.property(what)
	}
	return r.err
}
