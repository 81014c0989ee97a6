package upstream

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Run describes a run, for its report.
type Run struct {
	Kubernetes string // version of the tests and the cluster
	Cluster    string // its shape
	Network    string // what connected the Pods
	Date       time.Time
	Took       time.Duration
}

// Markdown writes a report of a run that left nothing out but the exclusions.
func (r Results) Markdown(w io.Writer, run Run) error {
	passed, failed, skipped, left := r.Of(Passed), r.Of(Failed), r.Of(Skipped), r.Of(NotChosen)
	var b strings.Builder
	b.WriteString("# Upstream's sig-network tests\n\n" +
		"Kubernetes' own end-to-end tests of networking, as they went here. `sudo make conformance` runs them and writes this page;\n" +
		"what is left out, and why, is in `e2e/k8s/upstream/excluded.go`. `make e2e-k8s` runs those of `essential.go` with every change.\n\n" +
		"| | |\n| --- | --- |\n")
	for _, row := range [][2]string{
		{"date", run.Date.Format(time.DateOnly)},
		{"Kubernetes", run.Kubernetes},
		{"cluster", run.Cluster},
		{"network", run.Network},
		{"time", run.Took.Round(time.Second).String()},
		{"**result**", fmt.Sprintf("**%d passed, %d failed**, %d skipped themselves, %d left out, of %d", len(passed), len(failed), len(skipped), len(left), len(r.Tests))},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	table := func(title, column string, tests []Result, cell func(Result) string) {
		if len(tests) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n| test | %s |\n| --- | --- |\n", title, column)
		for _, t := range tests {
			fmt.Fprintf(&b, "| %s | %s |\n", short(t.Name), escape(cell(t)))
		}
	}
	table("Failed", "why", failed, firstLine)
	table("Passed", "s", passed, func(t Result) string { return fmt.Sprintf("%.0f", t.Time.Seconds()) })
	table("Skipped by the tests themselves", "why", skipped, firstLine)
	b.WriteString("\n## Left out\n")
	for _, g := range groups(left) {
		fmt.Fprintf(&b, "\n### %s\n\n", g.reason)
		for _, t := range g.tests {
			fmt.Fprintf(&b, "- %s\n", short(t.Name))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

type group struct {
	reason string
	tests  []Result
}

// groups sorts tests by the exclusion that left them out.
func groups(tests []Result) []group {
	list := make([]group, len(exclusions)+1)
	for i, e := range exclusions {
		list[i].reason = e.reason
	}
	list[len(exclusions)].reason = "By the selection of this run"
	for _, t := range tests {
		i := exclusionOf(t.Name)
		list[i].tests = append(list[i].tests, t)
	}
	filled := list[:0]
	for _, g := range list {
		if g.tests != nil {
			filled = append(filled, g)
		}
	}
	return filled
}

// short is a test's name without what all of them have in common, for a table.
func short(name string) string { return escape(strings.TrimPrefix(name, "[sig-network] ")) }

func firstLine(t Result) string {
	line, _, _ := strings.Cut(t.Message, "\n")
	return line
}

// escape keeps a text in its cell, and from being taken for markup.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`).Replace(text)
}
