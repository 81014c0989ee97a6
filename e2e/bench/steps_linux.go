package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// step is the mean time that the agent spent in one step of an operation.
type step struct {
	Operation string  `json:"operation"`
	Step      string  `json:"step"`
	Count     float64 `json:"count"`
	Mean      float64 `json:"mean"` // milliseconds
}

// stepMetric is the histogram that the agent keeps of its steps.
const stepMetric = "antrea_lite_operation_step_duration_seconds"

// steps reads from the agent's metrics where its time went in all runs.
func steps(ctx context.Context) ([]step, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+lab.MetricsAddress+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return parseSteps(string(body))
}

func parseSteps(metrics string) ([]step, error) {
	var list []step
	for line := range strings.Lines(metrics) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), stepMetric+"_")
		if !ok {
			continue
		}
		series, value, _ := strings.Cut(rest, " ")
		kind, labels, _ := strings.Cut(series, "{")
		if kind != "sum" && kind != "count" {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		s := step{Operation: label(labels, "operation"), Step: label(labels, "step")}
		i := slices.IndexFunc(list, func(x step) bool { return x.Operation == s.Operation && x.Step == s.Step })
		if i < 0 {
			i = len(list)
			list = append(list, s)
		}
		if kind == "count" {
			list[i].Count = v
		} else {
			list[i].Mean = v * 1000 // divided below, when the count is known
		}
	}
	for i := range list {
		list[i].Mean /= max(1, list[i].Count)
	}
	return list, nil
}

func label(labels, name string) string {
	_, rest, _ := strings.Cut(labels, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
