package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// report is what -o json prints.
type report struct {
	Machine map[string]string `json:"machine"`
	Pods    int               `json:"pods"`
	Results []result          `json:"results"`
	Steps   []step            `json:"agentSteps"`
}

// result is one line: one verb of one plugin at one width. Times are in milliseconds.
type result struct {
	Plugin string  `json:"plugin"`
	Verb   string  `json:"verb"`
	Width  int     `json:"width"`
	Calls  int     `json:"calls"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
	Rate   float64 `json:"perSecond"`
	Pings  int     `json:"firstPings"`
	Lost   int     `json:"firstPingsLost"`
}

func (s *series) result(plugin, verb string, width int) result {
	sorted := slices.Sorted(slices.Values(s.took))
	return result{
		Plugin: plugin, Verb: verb, Width: width, Calls: len(sorted),
		P50: quantile(sorted, 50), P90: quantile(sorted, 90), P99: quantile(sorted, 99), Max: quantile(sorted, 100),
		Rate: float64(len(sorted)) / s.total.Seconds(), Pings: s.pings, Lost: s.lost,
	}
}

// quantile is the smallest time that percent of all do not exceed (nearest rank).
func quantile(sorted []time.Duration, percent int) float64 {
	rank := (len(sorted)*percent + 99) / 100
	return float64(sorted[max(0, rank-1)].Microseconds()) / 1000
}

func (r report) print(w io.Writer, format string) error {
	if format == "json" {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Machine)) {
		fmt.Fprintf(w, "%s: %s\n", key, r.Machine[key])
	}
	fmt.Fprintf(w, "%d Pods in each run; times in ms, process start included\n\n", r.Pods)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "plugin\tverb\tat a time\tp50\tp90\tp99\tmax\tper second\tfirst ping lost\t")
	for _, line := range r.Results {
		lost := "-"
		if line.Pings > 0 {
			lost = fmt.Sprintf("%d of %d", line.Lost, line.Pings)
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", line.Plugin, line.Verb, line.Width, line.P50, line.P90, line.P99, line.Max, line.Rate, lost)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nwhere the agent's time went, mean of all runs, waiting for its turn included:")
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "operation\tstep\tcalls\tmean ms\t")
	for _, s := range r.Steps {
		fmt.Fprintf(t, "%s\t%s\t%.0f\t%.2f\t\n", s.Operation, s.Step, s.Count, s.Mean)
	}
	return t.Flush()
}
