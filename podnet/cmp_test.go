package podnet_test

import (
	"net/netip"

	"github.com/google/go-cmp/cmp"
)

// compareNetip lets cmp compare addresses, whose fields it cannot see.
var compareNetip = []cmp.Option{
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}
