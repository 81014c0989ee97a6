package upstream

import (
	"regexp"
	"strings"
)

// exclusion leaves tests out of the full run.
type exclusion struct {
	pattern *regexp.Regexp // matches anywhere in the name
	reason  string         // a heading of the report
}

// The first that matches counts.
var exclusions = []exclusion{
	{regexp.MustCompile(`Netpol|NetworkPolicy`), "NetworkPolicy is not enforced in this release"},
	{regexp.MustCompile(`\[Feature:LoadBalancer\]`), "Nothing here gives Services of type LoadBalancer an address"},
	{regexp.MustCompile(`\[Feature:SCTPConnectivity\]`), "The machine's kernel has no SCTP"},
	{regexp.MustCompile(`Internet connection`), "The cluster has no way to the Internet"},
	{regexp.MustCompile(`\[Disruptive\]`), "They restart components by SSH; the scenarios of e2e/k8s do that"},
	{regexp.MustCompile(`\[Feature:LocalhostNodePorts\]`), "kube-proxy serves NodePorts at 127.0.0.1 in iptables mode only, and here it uses nftables"},
	{regexp.MustCompile(`DNS configMap nameserver`), "They make the cluster's CoreDNS ask others, some of them in the Internet"},
	{regexp.MustCompile(`IPerf2`), "Debian's iperf prints fewer columns than the test reads"},
	{regexp.MustCompile(`\[Feature:PerformanceDNS\]`), "A measurement with ten thousand Services"},
}

// exclusionOf returns the index of the exclusion that a test falls under, or
// the number of exclusions.
func exclusionOf(name string) int {
	for i, e := range exclusions {
		if e.pattern.MatchString(name) {
			return i
		}
	}
	return len(exclusions)
}

// Excluded is a regular expression for the tests that cannot pass here, because
// of the machine, the harness or what this release does not do.
func Excluded() string {
	var patterns []string
	for _, e := range exclusions {
		patterns = append(patterns, e.pattern.String())
	}
	return strings.Join(patterns, "|")
}
