package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/antrea-lite/podnet/e2e/lab"
)

// The bridge of the shipped manifest: where it listens for OpenFlow, and the node's
// own interface on it.
const (
	bridgeMgmt = "/run/openvswitch/br-int.mgmt"
	gateway    = "antrea-gw0"
)

// State lists what Pods leave on a node: interfaces, namespaces, mounts, routes,
// cgroups, sandboxes, leases of addresses, results that the runtime keeps for DEL
// and, where there is an Open vSwitch, ports and flows.
func (c *Cluster) State(ctx context.Context, n *Node) (lab.Listing, error) {
	l := lab.Listing{}
	script := map[string][]string{
		"interface": {"ip", "-o", "link"},
		"route":     {"sh", "-c", "ip -4 route; ip -6 route"},
		"neighbour": {"sh", "-c", "ip neigh show nud permanent"},
	}
	if _, err := os.Stat(n.Root("/run/openvswitch/db.sock")); err == nil {
		script["port"] = []string{"ovs-vsctl", "--timeout=10", "--columns=name", "--bare", "list", "Interface"}
		script["number"] = []string{"ovs-vsctl", "--timeout=10", "get", "Interface", gateway, "ofport"}
		script["flow"] = []string{"ovs-ofctl", "--timeout=10", "-OOpenFlow15", "--no-stats", "--no-names", "dump-flows", "unix:" + bridgeMgmt}
	}
	for kind, args := range script {
		out, err := n.Run(ctx, args...)
		if err != nil {
			return nil, err
		}
		l[kind] = nonEmpty(out)
	}
	if script["flow"] != nil {
		l["flow"] = lab.FlowLines(strings.Join(l["flow"], "\n"))
		if err := n.hideGateway(l["flow"], l["number"]); err != nil {
			return nil, err
		}
		delete(l, "number")
	}
	for i, line := range l["route"] {
		// It says that the bridge has no port at this moment.
		l["route"][i] = strings.Replace(line, " linkdown", "", 1)
	}
	for i, line := range l["interface"] {
		// "7: eth0@if5: <FLAGS> mtu ...": indices change with a reboot.
		_, rest, _ := strings.Cut(line, ": ")
		l["interface"][i] = rest[:strings.IndexAny(rest, "@:")]
	}
	for kind, pattern := range map[string]string{
		"network namespace": "/run/netns/*",
		"lease":             "/var/lib/cni/networks/*/[0-9a-f]*[.:]*",
		"lease of agent":    "/run/antrea-lite/leases/*/[0-9a-f]*[.:]*",
		"result":            "/var/lib/cni/results/*",
		"sandbox":           tasks + "/*",
	} {
		found, err := filepath.Glob(n.Root(pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			l[kind] = append(l[kind], strings.TrimPrefix(path, n.Root("/")))
		}
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", n.PID()))
	if err != nil {
		return nil, err
	}
	for _, line := range nonEmpty(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			l["mount"] = append(l["mount"], fields[4])
		}
	}
	l["cgroup"], err = podCgroups(c.cgroup(n))
	for _, lines := range l {
		for i := range lines {
			lines[i] = identifiers.ReplaceAllString(lines[i], "ID")
		}
		slices.Sort(lines)
	}
	return l, err
}

// identifiers are those of containers and Pods, and the random ends of the names of
// token volumes: after a reboot the same Pods have other containers, and a DaemonSet's
// Pod that was deleted has a successor.
var identifiers = regexp.MustCompile(`[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|kube-api-access-[0-9a-z]{5}`)

// hideGateway takes out of flows what the gateway's interface has got another of with
// each boot or restart of Open vSwitch: its MAC, its link-local address and its number.
func (n *Node) hideGateway(flows, number []string) error {
	var names []string
	err := lab.In(n.NetNS(), func() error {
		i, err := net.InterfaceByName(gateway)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", gateway, n.Name, err)
		}
		names = append(names, i.HardwareAddr.String(), "MAC")
		addrs, err := i.Addrs()
		for _, a := range addrs {
			if ip := a.(*net.IPNet).IP; ip.To4() == nil && ip.IsLinkLocalUnicast() {
				names = append(names, ip.String(), "LINKLOCAL")
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(strings.Join(number, ""), 10, 16)
	if err != nil {
		return fmt.Errorf("number of %s on %s: %w", gateway, n.Name, err)
	}
	for format, hidden := range map[string]string{"in_port=%d,": "in_port=GW,", "output:%d,": "output:GW,", "set_field:%#x->reg1,": "set_field:GW->reg1,"} {
		names = append(names, fmt.Sprintf(format, port), hidden)
	}
	replacer := strings.NewReplacer(names...)
	for i := range flows {
		flows[i] = replacer.Replace(flows[i])
	}
	return nil
}
