package workload

import (
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	var hundred Times
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, test := range []struct {
		times Times
		p     int
		want  time.Duration
	}{
		{hundred, 50, 50}, {hundred, 99, 99}, {hundred, 100, 100}, {hundred, 0, 1},
		{Times{7}, 50, 7}, {Times{7}, 99, 7}, {Times{1, 2, 3}, 50, 2}, {Times{1, 2, 3}, 99, 3}, {nil, 50, 0},
	} {
		if got := test.times.Percentile(test.p); got != test.want {
			t.Errorf("p%d of %d values is %d, want %d", test.p, len(test.times), got, test.want)
		}
	}
}
