// coredns is CoreDNS with no more plugins than a cluster's DNS and the upstream
// tests' own DNS servers need.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order in which plugins see a question. CoreDNS' own list is the
	// package's default and names plugins that are not compiled in here.
	dnsserver.Directives = []string{"errors", "log", "health", "ready", "cache", "hosts", "kubernetes"}
	coremain.Run()
}
