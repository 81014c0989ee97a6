package derive

import (
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
)

// The values are in use on nodes: an agent of another version has to find what
// this one made.
func TestDerivedValuesStay(t *testing.T) {
	key := ifstore.Key{ContainerID: "8f3c1c", IfName: "eth0"}
	name := Name("pod", key)
	for what, got := range map[string][2]string{
		"name":        {name, "podnurdr7fjzdjq"},
		"MAC":         {MAC("container", key).String(), "be:e8:4e:b8:29:e9"},
		"MAC of name": {MACOfName(name).String(), "4a:78:15:3f:84:7c"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %s, want %s", what, got[0], got[1])
		}
	}
	if a, b := MACOfName("pod1"), MACOfName("pod2"); a == b || a[0]&3 != 2 {
		t.Errorf("%v and %v", a, b)
	}
}
