package windows_test

import (
	"errors"
	"testing"

	"github.com/antrea-lite/podnet/backend/windows"
	"github.com/antrea-lite/podnet/podnet"
)

func TestParseNetNS(t *testing.T) {
	guid := windows.GUID{0x5f, 0x0b, 0x11, 0x90, 0x63, 0xbe, 0x4e, 0x0c, 0xb9, 0x74, 0xbd, 0x0f, 0x55, 0x67, 0x5a, 0x42}
	for _, test := range []struct {
		in    string
		want  windows.NetNS
		infra bool
		bad   bool
	}{
		{in: "5f0b1190-63be-4e0c-b974-bd0f55675a42", want: windows.NetNS{Namespace: guid}, infra: true},
		{in: "5F0B1190-63BE-4E0C-B974-BD0F55675A42", want: windows.NetNS{Namespace: guid}, infra: true},
		{in: "{5f0b1190-63be-4e0c-b974-bd0f55675a42}", want: windows.NetNS{Namespace: guid}, infra: true},
		{in: "none", want: windows.NetNS{None: true}, infra: true},
		{in: "container:0a1b2c", want: windows.NetNS{Container: "0a1b2c"}},
		{in: "container:none", want: windows.NetNS{Container: "none"}},
		{in: "", want: windows.NetNS{}},
		{in: "container:", bad: true},
		{in: "container:a b", bad: true},
		{in: "container:a:b", bad: true},
		{in: "host", bad: true},
		{in: "None", bad: true},
		{in: "none ", bad: true},
		{in: "/var/run/netns/x", bad: true},
		{in: "00000000-0000-0000-0000-000000000000", bad: true}, // no namespace has it; HNS takes it for "any"
		{in: "5f0b1190-63be-4e0c-b974-bd0f55675a4", bad: true},
		{in: "{5f0b1190-63be-4e0c-b974-bd0f55675a42", bad: true},
		{in: "5f0b1190x63be-4e0c-b974-bd0f55675a42", bad: true},
		{in: "5f0b1190-63be-4e0c-b974-bd0f55675a4g", bad: true},
		{in: "5f0b119-063be-4e0c-b974-bd0f55675a42", bad: true},
		{in: "5f0b1190-63be-4e0c-b974-bd0f5567-a42", bad: true},
	} {
		got, err := windows.ParseNetNS(test.in)
		if test.bad {
			if !errors.Is(err, podnet.ErrBadRequest) {
				t.Errorf("%q: %+v, %v; want a bad request", test.in, got, err)
			}
			continue
		}
		if err != nil || got != test.want || got.Infra() != test.infra {
			t.Errorf("%q: %+v (infra %v), %v; want %+v (%v)", test.in, got, got.Infra(), err, test.want, test.infra)
		}
		if again, err := windows.ParseNetNS(got.String()); err != nil || again != got {
			t.Errorf("%q: String gives %q, which is %+v, %v", test.in, got.String(), again, err)
		}
	}
}

func FuzzParseNetNS(f *testing.F) {
	for _, s := range []string{"", "none", "container:a", "5f0b1190-63be-4e0c-b974-bd0f55675a42"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := windows.ParseNetNS(s)
		if err != nil {
			return
		}
		if again, err := windows.ParseNetNS(n.String()); err != nil || again != n {
			t.Errorf("%q: %+v, then %+v, %v", s, n, again, err)
		}
	})
}
