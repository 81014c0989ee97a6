package sim

import (
	"errors"
	"testing"

	"github.com/antrea-lite/podnet/podnet"
)

func TestFate(t *testing.T) {
	add := func(begun, ended int, err error) *call { return &call{kind: Add, begun: begun, ended: ended, err: err} }
	del := func(begun, ended int, err error) *call { return &call{kind: Del, begun: begun, ended: ended, err: err} }
	failed := errors.New("failed")
	goesOn := &podnet.OpError{Step: "flows", Err: failed}
	locked := &podnet.OpError{Step: "lock", Err: failed}
	cut := &call{kind: Add, begun: 1, ended: 2, err: failed, cut: true}
	for name, test := range map[string]struct {
		calls []*call
		want  fate
	}{
		"nothing":                       {nil, fate{absent: true}},
		"added":                         {[]*call{add(1, 2, nil)}, fate{present: true}},
		"an ADD that failed":            {[]*call{add(1, 2, failed)}, fate{absent: true}},
		"a repeated ADD that failed":    {[]*call{add(1, 2, nil), add(3, 4, failed)}, fate{present: true}},
		"two ADDs, one failed":          {[]*call{add(1, 3, failed), add(2, 4, nil)}, fate{present: true}},
		"deleted":                       {[]*call{add(1, 2, nil), del(3, 4, nil)}, fate{absent: true}},
		"a removal goes on":             {[]*call{add(1, 2, nil), del(3, 4, goesOn)}, fate{absent: true}},
		"a DEL that never began":        {[]*call{add(1, 2, nil), del(3, 4, locked)}, fate{present: true, absent: true, owed: true}},
		"a DEL that meets an ADD":       {[]*call{add(1, 3, nil), del(2, 4, nil)}, fate{present: true, absent: true}},
		"a DEL that ends an ADD":        {[]*call{add(1, 3, failed), del(2, 4, nil)}, fate{absent: true}},
		"the agent was killed in ADD":   {[]*call{cut}, fate{present: true, absent: true, owed: true}},
		"added again after all of that": {[]*call{cut, del(3, 4, nil), add(5, 6, nil)}, fate{present: true}},
	} {
		if got := after(fate{absent: true}, test.calls); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestScheduleSurvivesJSON(t *testing.T) {
	for seed := range uint64(50) {
		s := Generate(seed)
		back, err := Parse([]byte(s.JSON()))
		if err != nil || back.JSON() != s.JSON() {
			t.Fatalf("seed %d: %v\n%s\n%s", seed, err, s.JSON(), back.JSON())
		}
		if Generate(seed).JSON() != s.JSON() {
			t.Fatalf("seed %d gives two schedules", seed)
		}
	}
}

func TestShapeForgetsWhatDiffers(t *testing.T) {
	a := shape(`1m3.2s: c0 is waiting on OpenFlow port 1 (waiting for "x"), want ready on 1`)
	b := shape(`7m22.817s: c3 is waiting on OpenFlow port 2 (waiting for "y z"), want ready on 2`)
	if other := shape(`1m3s: DEL of c0 at last: nothing`); a != b || a == other {
		t.Errorf("%q, %q, %q", a, b, other)
	}
}
