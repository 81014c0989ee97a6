package winpipe

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	for _, test := range []struct{ path, want, fails string }{
		{path: `\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock`, want: `\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock`},
		{path: `C:\openvswitch\var\run\openvswitch\br-int.mgmt`, want: `\\.\pipe\C:openvswitchvarrunopenvswitchbr-int.mgmt`},
		{path: `C:/openvswitch/var/run/openvswitch/db.sock`, want: `\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock`},
		{path: `//./PIPE/x`, want: `\\.\pipe\x`},
		{path: `\\.\pipe\`, fails: "has no name"},
		{path: "", fails: "has no name"},
		{path: `\\`, fails: "has no name"},
		{path: `\\.\pipe\a\b`, fails: "no slashes"},
		{path: `\\.\pipe\` + strings.Repeat("x", maxName), fails: "longer than"},
	} {
		got, err := Name(test.path)
		switch {
		case test.fails == "" && (err != nil || got != test.want):
			t.Errorf("Name(%q) = %q, %v; want %q", test.path, got, err, test.want)
		case test.fails != "" && (err == nil || !strings.Contains(err.Error(), test.fails)):
			t.Errorf("Name(%q) = %q, %v; want an error with %q", test.path, got, err, test.fails)
		}
	}
}
