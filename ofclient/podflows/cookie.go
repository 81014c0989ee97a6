package podflows

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/antrea-lite/podnet/ifstore"
)

// A cookie says whose flow it is and when it was written. In hexadecimal:
//
//	706f rrr iiiiiiiii
//	owner|round| id of the interface; 0 for the node's own flows
//
// The round changes with every replay, so that what earlier runs or sessions
// left behind can be told from what stands by intention. It has 12 bits and
// wraps: only "this round or not" is ever asked.
const (
	ownerBits uint64 = 0x706f << 48 // "po"
	ownerMask uint64 = 0xffff << 48
	roundMask uint64 = 0xfff << 36
	idMask    uint64 = 1<<36 - 1

	roundShift = 36
	rounds     = 1 << 12
	nodeID     = uint64(0)
)

// OwnedCookie reports whether a flow with this cookie is podnet's.
func OwnedCookie(cookie uint64) bool { return cookie&ownerMask == ownerBits }

// CookieOf returns the cookie, and the mask that finds it whatever the round,
// of an interface's flows: for flow dumps and for tools.
func CookieOf(key ifstore.Key) (cookie, mask uint64) {
	return ownerBits | ifaceID(key), ownerMask | idMask
}

func cookieFor(round uint16, id uint64) uint64 {
	return ownerBits | uint64(round)<<roundShift | id
}

func roundOf(cookie uint64) uint16 { return uint16(cookie & roundMask >> roundShift) }

// ifaceID hashes the key. Two interfaces of one node share an id with a chance
// of about n²/2^37, and even then every delete also names the exact match.
func ifaceID(key ifstore.Key) uint64 {
	// The length goes first: no pair of other parts then spells the same bytes.
	b := binary.BigEndian.AppendUint32(nil, uint32(len(key.ContainerID)))
	b = append(b, key.ContainerID...)
	sum := sha256.Sum256(append(b, key.IfName...))
	if id := binary.BigEndian.Uint64(sum[:8]) & idMask; id != nodeID {
		return id
	}
	return 1
}
