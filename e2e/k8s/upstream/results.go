package upstream

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Outcome is how a test ended.
type Outcome int

// What became of a test.
const (
	NotChosen Outcome = iota // the selection left it out
	Passed
	Failed
	Skipped // the test itself found that it cannot run here
)

// Result is what became of one test.
type Result struct {
	Name    string // in full, with its tags
	Outcome Outcome
	Time    time.Duration
	Message string // why it failed or was skipped
}

// Results are those of a run.
type Results struct {
	Tests []Result // by name
	// Suite says what failed beside the tests: set-up, a time limit.
	Suite []string
}

// suiteReport is what is used of Ginkgo's report.
type suiteReport struct {
	SpecialSuiteFailureReasons []string
	SpecReports                []specReport
}

type specReport struct {
	ContainerHierarchyTexts []string
	LeafNodeType            string
	LeafNodeText            string
	State                   string
	RunTime                 time.Duration
	Failure                 struct{ Message string }
}

// readReport reads the report in JSON that Ginkgo wrote.
func readReport(path string) (Results, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Results{}, fmt.Errorf("the tests left no report: %w", err)
	}
	r, err := parseReport(raw)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return r, err
}

func parseReport(raw []byte) (Results, error) {
	var suites []suiteReport
	if err := json.Unmarshal(raw, &suites); err != nil {
		return Results{}, err
	}
	var r Results
	byName := map[string]Result{}
	for _, suite := range suites {
		r.Suite = append(r.Suite, suite.SpecialSuiteFailureReasons...)
		for _, spec := range suite.SpecReports {
			result := spec.result()
			if spec.LeafNodeType != "It" {
				if result.Outcome == Failed {
					r.Suite = append(r.Suite, spec.LeafNodeType+": "+result.Message)
				}
				continue
			}
			if !strings.HasPrefix(result.Name, "[sig-network]") {
				continue
			}
			// Each process may report what the selection left out.
			if old, there := byName[result.Name]; !there || old.Outcome == NotChosen || result.Outcome == Failed {
				byName[result.Name] = result
			}
		}
	}
	for _, result := range byName {
		r.Tests = append(r.Tests, result)
	}
	slices.SortFunc(r.Tests, func(a, b Result) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

func (s specReport) result() Result {
	r := Result{
		Name:    strings.TrimSpace(strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")),
		Time:    s.RunTime,
		Message: strings.TrimSpace(s.Failure.Message),
	}
	switch {
	case s.State == "passed":
		r.Outcome = Passed
	case s.State == "skipped" && r.Message != "":
		r.Outcome = Skipped
	case s.State == "skipped", s.State == "pending":
		r.Outcome = NotChosen
	default: // failed, panicked, timedout, interrupted, aborted
		r.Outcome = Failed
		if r.Message == "" {
			r.Message = s.State
		}
	}
	return r
}

// Of returns the tests that ended so.
func (r Results) Of(outcome Outcome) []Result {
	var list []Result
	for _, t := range r.Tests {
		if t.Outcome == outcome {
			list = append(list, t)
		}
	}
	return list
}

// Check demands that something ran and nothing failed, and of tests named in
// full that each of them has passed.
func (r Results) Check(names ...string) error {
	var wrong []string
	for _, text := range r.Suite {
		wrong = append(wrong, "the suite: "+text)
	}
	for _, t := range r.Of(Failed) {
		wrong = append(wrong, t.Name+":\n  "+strings.ReplaceAll(t.Message, "\n", "\n  "))
	}
	for _, name := range names {
		i, found := slices.BinarySearchFunc(r.Tests, name, func(t Result, name string) int { return strings.Compare(t.Name, name) })
		switch {
		case !found:
			wrong = append(wrong, name+": there is no such test")
		case r.Tests[i].Outcome == Skipped:
			wrong = append(wrong, name+": skipped: "+r.Tests[i].Message)
		case r.Tests[i].Outcome == NotChosen:
			wrong = append(wrong, name+": did not run")
		}
	}
	if wrong == nil && len(r.Of(Passed)) == 0 {
		wrong = append(wrong, fmt.Sprintf("none of %d tests ran: does the selection match any?", len(r.Tests)))
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%d upstream tests passed, %d problems:\n%s", len(r.Of(Passed)), len(wrong), strings.Join(wrong, "\n"))
}
