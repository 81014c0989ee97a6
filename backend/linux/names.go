package linux

import (
	"encoding/hex"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/internal/derive"
)

// maxAlias is IFALIASZ-1.
const maxAlias = 255

// hostName names the host's end: the prefix and as much of a hash as fits.
func hostName(prefix string, key ifstore.Key) string { return derive.Name(prefix, key) }

// hostMAC is the MAC address of the host's end.
func hostMAC(key ifstore.Key) ifstore.MAC { return derive.MAC("host", key) }

// containerMAC is the MAC address of the container's end when the request asks for none.
func containerMAC(key ifstore.Key) ifstore.MAC { return derive.MAC("container", key) }

// alias is the ifalias of the host's end: it proves to Unlink and to a later
// Link whose the interface is, and tells a reader of `ip link` the same.
func alias(key ifstore.Key) string {
	s := "podnet " + key.String()
	if len(s) <= maxAlias {
		return s
	}
	h := derive.Digest("alias", key)
	return "podnet sha256:" + hex.EncodeToString(h[:])
}
