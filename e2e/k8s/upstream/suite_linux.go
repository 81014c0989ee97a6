package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// Suite is the compiled tests.
type Suite struct {
	Dir    string   // with conformance.test and ginkgo
	Images []string // that the tests' Pods run
	// Processes run tests at a time. Most of what a test does is to wait.
	Processes int
	// Output is told what goes on.
	Output io.Writer
}

// Selection chooses tests by regular expressions that match anywhere in a name.
type Selection struct {
	Focus string // "" is all
	Skip  string // "" is none
}

// Named selects tests by their full names.
func Named(names ...string) Selection {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name) + "$"
	}
	return Selection{Focus: strings.Join(quoted, "|")}
}

// Run gives the nodes the images and runs the selected tests, from the control
// plane's network namespace: API server and nodes can be reached from there.
// The error says that the tests could not be run; whether they passed is told
// by the results.
func (s Suite) Run(ctx context.Context, c *cluster.Cluster, sel Selection) (_ Results, err error) {
	if err := c.Import(ctx, s.Images...); err != nil {
		return Results{}, err
	}
	dir, err := os.MkdirTemp(c.Config().Dir, "upstream-")
	if err != nil {
		return Results{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const report = "report.json"
	args := []string{"--net=" + c.ControlNS(), "--", filepath.Join(s.Dir, "ginkgo"), "run",
		fmt.Sprint("--procs=", s.Processes), "--no-color", "--timeout=3h", "--label-filter=sig-network",
		"--output-dir=" + dir, "--json-report=" + report}
	if sel.Focus != "" {
		args = append(args, "--focus="+sel.Focus)
	}
	if sel.Skip != "" {
		args = append(args, "--skip="+sel.Skip)
	}
	args = append(args, filepath.Join(s.Dir, "conformance.test"), "--",
		"--provider=skeleton", "--kubeconfig="+c.Kubeconfig(), "--kubectl-path="+filepath.Join(c.Config().Parts.Kubeall, "kubectl"),
		"--e2e-output-dir="+dir, "--allowed-not-ready-nodes=0",
		fmt.Sprint("--num-nodes=", len(c.Nodes())))
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	cmd.Dir = dir
	// It would compare its version with the one that this tree's own go.mod has.
	cmd.Env = append(os.Environ(), "GO111MODULE=off")
	cmd.Stdout, cmd.Stderr = s.Output, s.Output
	runErr := cmd.Run()
	results, err := readReport(filepath.Join(dir, report))
	if err != nil {
		return Results{}, errors.Join(runErr, err)
	}
	// A test that failed makes ginkgo fail; its failure without one has another cause.
	if runErr != nil && len(results.Of(Failed)) == 0 && len(results.Suite) == 0 {
		return results, fmt.Errorf("ginkgo: %w", runErr)
	}
	return results, nil
}
