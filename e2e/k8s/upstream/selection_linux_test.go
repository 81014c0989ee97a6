package upstream

import (
	"regexp"
	"testing"
)

func TestNamedSelectsNoOthers(t *testing.T) {
	const name = "[sig-network] Services should work (twice) [Conformance]"
	focus := regexp.MustCompile(Named(name, "[sig-network] DNS answers").Focus)
	for _, test := range []struct {
		text string
		want bool
	}{
		// Ginkgo puts the suite's name before a test's.
		{"sig-network " + name, true},
		{"sig-network [sig-network] DNS answers", true},
		{"sig-network " + name + " [Slow]", false},
		{"sig-network [sig-network] Services should work twice [Conformance]", false},
	} {
		if got := focus.MatchString(test.text); got != test.want {
			t.Errorf("%q matches %s: %v", test.text, focus, got)
		}
	}
}

func TestNoEssentialTestIsExcluded(t *testing.T) {
	excluded := regexp.MustCompile(Excluded())
	for _, name := range Essential() {
		if excluded.MatchString(name) {
			t.Errorf("%s is essential and excluded", name)
		}
	}
	if !excluded.MatchString("[sig-network] Netpol should deny") {
		t.Error("nothing is excluded")
	}
}
