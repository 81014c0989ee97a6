package upstream

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const report = `[{
  "SpecialSuiteFailureReasons": ["Suite Timeout Elapsed"],
  "SpecReports": [
    {"LeafNodeType": "SynchronizedBeforeSuite", "State": "failed", "Failure": {"Message": "no API server"}},
    {"LeafNodeType": "DeferCleanup (Suite)", "State": "passed"},
    {"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "work", "State": "skipped"},
    {"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "work", "State": "passed", "RunTime": 1500000000},
    {"ContainerHierarchyTexts": ["[sig-network] Services"], "LeafNodeType": "It", "LeafNodeText": "work", "State": "skipped"},
    {"ContainerHierarchyTexts": ["[sig-network] DNS", "HostNetwork"], "LeafNodeType": "It", "LeafNodeText": "hang", "State": "timedout"},
    {"ContainerHierarchyTexts": ["[sig-network] DNS"], "LeafNodeType": "It", "LeafNodeText": "answer", "State": "failed", "Failure": {"Message": "no answer\nfrom 10.96.0.10"}},
    {"ContainerHierarchyTexts": ["[sig-network] DNS"], "LeafNodeType": "It", "LeafNodeText": "for gce", "State": "skipped", "Failure": {"Message": "only for gce\n"}},
    {"ContainerHierarchyTexts": ["[sig-network] Netpol"], "LeafNodeType": "It", "LeafNodeText": "deny", "State": "skipped"},
    {"ContainerHierarchyTexts": ["[sig-network] Netpol"], "LeafNodeType": "It", "LeafNodeText": "later", "State": "pending"},
    {"ContainerHierarchyTexts": ["[sig-apps] Deployment"], "LeafNodeType": "It", "LeafNodeText": "roll", "State": "failed"}
  ]}]`

func parsed(t *testing.T, text string) Results {
	t.Helper()
	r, err := parseReport([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestResultsOfAReport(t *testing.T) {
	want := Results{
		Suite: []string{"Suite Timeout Elapsed", "SynchronizedBeforeSuite: no API server"},
		Tests: []Result{
			{Name: "[sig-network] DNS HostNetwork hang", Outcome: Failed, Message: "timedout"},
			{Name: "[sig-network] DNS answer", Outcome: Failed, Message: "no answer\nfrom 10.96.0.10"},
			{Name: "[sig-network] DNS for gce", Outcome: Skipped, Message: "only for gce"},
			{Name: "[sig-network] Netpol deny"},
			{Name: "[sig-network] Netpol later"},
			{Name: "[sig-network] Services work", Outcome: Passed, Time: 1500 * time.Millisecond},
		},
	}
	if diff := cmp.Diff(want, parsed(t, report)); diff != "" {
		t.Error(diff)
	}
	if _, err := parseReport([]byte("[{")); err == nil {
		t.Error("half a report is none")
	}
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	err := parsed(t, report).Check("[sig-network] Services work", "[sig-network] DNS for gce", "[sig-network] Netpol deny", "[sig-network] Services fly")
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	want := `1 upstream tests passed, 7 problems:
the suite: Suite Timeout Elapsed
the suite: SynchronizedBeforeSuite: no API server
[sig-network] DNS HostNetwork hang:
  timedout
[sig-network] DNS answer:
  no answer
  from 10.96.0.10
[sig-network] DNS for gce: skipped: only for gce
[sig-network] Netpol deny: did not run
[sig-network] Services fly: there is no such test`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
}

func TestCheckOfOneTest(t *testing.T) {
	for _, test := range []struct {
		name, state string
		wrong       string
	}{
		{"passed", "passed", ""},
		{"failed", "failed", "failed"},
		{"nothing ran", "skipped", "none of 1 tests ran"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := parsed(t, `[{"SpecReports": [{"ContainerHierarchyTexts": ["[sig-network] a"], "LeafNodeType": "It", "LeafNodeText": "b", "State": "`+test.state+`"}]}]`).Check()
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%v, want %q", err, test.wrong)
			}
		})
	}
}

func TestMarkdown(t *testing.T) {
	var page strings.Builder
	run := Run{Kubernetes: "v1", Cluster: "2 nodes", Network: "antrea-lite", Date: time.Date(2026, 12, 1, 16, 0, 0, 0, time.UTC), Took: 90 * time.Second}
	if err := parsed(t, report).Markdown(&page, run); err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(page.String(), "| date |")
	if !found {
		t.Fatalf("no date in\n%s", page.String())
	}
	want := ` 2026-12-01 |
| Kubernetes | v1 |
| cluster | 2 nodes |
| network | antrea-lite |
| time | 1m30s |
| **result** | **1 passed, 2 failed**, 1 skipped themselves, 2 left out, of 6 |

## Failed

| test | why |
| --- | --- |
| DNS HostNetwork hang | timedout |
| DNS answer | no answer |

## Passed

| test | s |
| --- | --- |
| Services work | 2 |

## Skipped by the tests themselves

| test | why |
| --- | --- |
| DNS for gce | only for gce |

## Left out

### NetworkPolicy is not enforced in this release

- Netpol deny
- Netpol later
`
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
}
