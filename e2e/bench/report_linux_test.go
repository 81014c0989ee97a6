package main

import (
	"testing"
	"time"
)

func TestQuantilesAreNearestRank(t *testing.T) {
	var s series
	for i := 100; i >= 1; i-- {
		s.took = append(s.took, time.Duration(i)*time.Millisecond)
		s.total += time.Duration(i) * time.Millisecond
	}
	r := s.result("p", "ADD", 1)
	if r.P50 != 50 || r.P90 != 90 || r.P99 != 99 || r.Max != 100 || r.Calls != 100 {
		t.Errorf("%+v, want 50 90 99 100 of 100", r)
	}
	one := series{took: []time.Duration{7 * time.Millisecond}, total: 7 * time.Millisecond}
	if r := one.result("p", "ADD", 1); r.P50 != 7 || r.P99 != 7 {
		t.Errorf("one call: %+v, want 7", r)
	}
}

func TestStepsAreMeans(t *testing.T) {
	got, err := parseSteps(`# HELP antrea_lite_operation_step_duration_seconds Duration.
antrea_lite_operation_step_duration_seconds_bucket{operation="add",step="link",le="0.1"} 4
antrea_lite_operation_step_duration_seconds_sum{operation="add",step="link"} 0.02
antrea_lite_operation_step_duration_seconds_count{operation="add",step="link"} 4
antrea_lite_other_sum{operation="add",step="link"} 9
`)
	if err != nil || len(got) != 1 || got[0] != (step{Operation: "add", Step: "link", Count: 4, Mean: 5}) {
		t.Errorf("%+v %v", got, err)
	}
}
