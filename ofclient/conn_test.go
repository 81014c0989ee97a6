package ofclient

import "testing"

// Xids are never 0, which is for messages without a request, and a range never wraps.
func TestReserve(t *testing.T) {
	c := &Conn{nextXID: 0xffff_fff0}
	for _, test := range []struct{ n, want uint32 }{{4, 0xffff_fff0}, {11, 0xffff_fff4}, {2, 1}, {1, 3}} {
		if got := c.reserve(test.n); got != test.want {
			t.Errorf("reserve(%d) = %#x, want %#x", test.n, got, test.want)
		}
	}
	c.nextXID = 0xffff_ffff
	if got := c.reserve(1); got != 1 {
		t.Errorf("the last xid: %#x", got)
	}
}
