package linux

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
)

// Names, MAC addresses and aliases over odd ids: every pair has its own, and
// the kernel and OpenFlow take each.
func TestNamesAreUniqueAndFit(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const alphabet = "abcXYZ019_.-"
	odd := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(alphabet[rng.IntN(len(alphabet))])
		}
		return b.String()
	}
	keys := map[ifstore.Key]bool{
		{ContainerID: "ab", IfName: "c"}: true, {ContainerID: "a", IfName: "bc"}: true, // one text, two pairs
		{ContainerID: "a", IfName: "eth0"}: true, {ContainerID: "A", IfName: "eth0"}: true,
		{ContainerID: strings.Repeat("a", 4096), IfName: "eth0"}: true, {ContainerID: strings.Repeat("a", 4097), IfName: "eth0"}: true,
	}
	for i := range 2000 {
		keys[ifstore.Key{ContainerID: odd(1 + rng.IntN(300)), IfName: odd(1 + rng.IntN(15))}] = true
		keys[ifstore.Key{ContainerID: fmt.Sprintf("%064x", i), IfName: "eth0"}] = true
	}
	seen := map[string]ifstore.Key{}
	once := func(what, s string, k ifstore.Key) {
		if other, ok := seen[what+s]; ok {
			t.Errorf("%v and %v share the %s %s", k, other, what, s)
		}
		seen[what+s] = k
	}
	for k := range keys {
		for _, prefix := range []string{"p", "pod", "abcdefg"} {
			name := hostName(prefix, k)
			if err := checkName(name); err != nil || len(name) != maxName || !strings.HasPrefix(name, prefix) {
				t.Errorf("%v: name %q: %v", k, name, err)
			}
			once("name", name, k)
			if again := hostName(prefix, k); again != name {
				t.Errorf("%v: %s, then %s", k, name, again)
			}
		}
		for _, mac := range []ifstore.MAC{hostMAC(k), containerMAC(k)} {
			if mac[0]&3 != 2 {
				t.Errorf("%v: MAC %v is not unicast and locally administered", k, mac)
			}
			once("MAC", mac.String(), k)
		}
		a := alias(k)
		if len(a) > maxAlias || a == "" {
			t.Errorf("%v: alias of %d bytes", k, len(a))
		}
		once("alias", a, k)
	}
}
