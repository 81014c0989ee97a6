package ifstore_test

import (
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
)

func TestParseMAC(t *testing.T) {
	for s, want := range map[string]ifstore.MAC{
		"02:00:00:00:0a:Ff": {2, 0, 0, 0, 10, 255},
		"00:00:00:00:00:00": {},
	} {
		got, err := ifstore.ParseMAC(s)
		if err != nil || got != want {
			t.Errorf("ParseMAC(%q) = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "02:00:00:00:00", "02:00:00:00:00:0", "02-00-00-00-00-00", "02:00:00:00:00:0g", "02:00:00:00:00:000"} {
		if got, err := ifstore.ParseMAC(s); err == nil {
			t.Errorf("ParseMAC(%q) = %v", s, got)
		}
	}
}

func FuzzParseMAC(f *testing.F) {
	f.Add("02:00:00:00:0a:ff")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ifstore.ParseMAC(s)
		if err != nil {
			return
		}
		if again, err := ifstore.ParseMAC(m.String()); err != nil || again != m {
			t.Errorf("%q -> %v -> %v, %v", s, m, again, err)
		}
	})
}
