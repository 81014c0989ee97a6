// Package derive makes the names and addresses that follow from an interface's
// key alone: the container id and the interface's name, the pair that CNI makes
// unique. A Pod's name is no part of it: a late DEL of an old sandbox must not
// meet the device of the new one. Deriving, instead of drawing at random, lets
// an ADD that is tried again find and prove its own leftovers, and gives the
// second try the address that neighbours may have learned from the first.
package derive

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"github.com/antrea-lite/podnet/ifstore"
)

const (
	// MaxName is how long a host interface's name may be: IFNAMSIZ-1, and
	// where OpenFlow cuts port names, on every OS.
	MaxName = 15
	// MinHash is how much of a name must tell interfaces apart. It keeps 40 bits
	// of the hash: the chance that two of a thousand interfaces of one node
	// share a name stays below one in a million.
	MinHash = 8
)

// encoding has letters and digits only, so that names are words everywhere.
var encoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// Name is the name of the host's end: the prefix and as much of a hash as fits
// into MaxName. The prefix has MaxName-MinHash characters at most.
func Name(prefix string, key ifstore.Key) string {
	h := Digest("name", key)
	return prefix + strings.ToLower(encoding.EncodeToString(h[:10]))[:MaxName-len(prefix)]
}

// MAC is a unicast, locally administered address; what tells the several
// addresses of one interface apart.
func MAC(what string, key ifstore.Key) ifstore.MAC {
	return macOf(Digest(what, key))
}

// MACOfName is such an address that follows from an interface's name alone. A
// platform whose objects carry no mark of their owner knows by it, without
// having the key, that it made the object of that name.
func MACOfName(name string) ifstore.MAC {
	return macOf(sha256.Sum256([]byte("mac\x00" + name)))
}

func macOf(h [sha256.Size]byte) ifstore.MAC {
	m := ifstore.MAC(h[:6])
	m[0] = m[0]&^0x01 | 0x02
	return m
}

// Digest hashes a key with separators, so that ("ab","c") and ("a","bc")
// differ; no CNI id contains a zero byte.
func Digest(what string, key ifstore.Key) [sha256.Size]byte {
	return sha256.Sum256([]byte(what + "\x00" + key.ContainerID + "\x00" + key.IfName))
}
