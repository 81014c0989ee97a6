package linux

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"

	"github.com/antrea-lite/podnet/ifstore"
)

// maxAlias is IFALIASZ-1.
const maxAlias = 255

// Everything below derives from the container id and the interface's name, the
// pair that CNI makes unique. A Pod's name is no part of it: a late DEL of an
// old sandbox must not meet the device of the new one. Deriving, instead of
// drawing at random, lets an ADD that is tried again find and prove its own
// leftovers, and gives the second try the address that neighbours may have
// learned from the first.

// hostName names the host's end: the prefix and as much of a hash as fits.
func hostName(prefix string, key ifstore.Key) string {
	h := digest("name", key)
	s := strings.ToLower(base32.StdEncoding.EncodeToString(h[:10]))
	return prefix + s[:maxName-len(prefix)]
}

// hostMAC is the MAC address of the host's end.
func hostMAC(key ifstore.Key) ifstore.MAC { return derivedMAC("host", key) }

// containerMAC is the MAC address of the container's end when the request asks for none.
func containerMAC(key ifstore.Key) ifstore.MAC { return derivedMAC("container", key) }

func derivedMAC(what string, key ifstore.Key) ifstore.MAC {
	h := digest(what, key)
	m := ifstore.MAC(h[:6])
	m[0] = m[0]&^0x01 | 0x02 // unicast, locally administered
	return m
}

// alias is the ifalias of the host's end: it proves to Unlink and to a later
// Link whose the interface is, and tells a reader of `ip link` the same.
func alias(key ifstore.Key) string {
	s := "podnet " + key.String()
	if len(s) <= maxAlias {
		return s
	}
	h := digest("alias", key)
	return "podnet sha256:" + hex.EncodeToString(h[:])
}

// digest hashes with separators, so that ("ab","c") and ("a","bc") differ; no
// CNI id contains a zero byte.
func digest(what string, key ifstore.Key) [sha256.Size]byte {
	return sha256.Sum256([]byte(what + "\x00" + key.ContainerID + "\x00" + key.IfName))
}
