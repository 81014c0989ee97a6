package main

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/containernetworking/cni/pkg/types"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// cniArgs is what this plugin reads from CNI_ARGS.
type cniArgs struct {
	pod cniapi.Pod
	wishes
}

// parseArgs reads CNI_ARGS. Unknown keys are ignored whether IgnoreUnknown is
// set or not: Kubernetes adds new ones and old plugins must live on.
func parseArgs(s string) (cniArgs, error) {
	var a cniArgs
	for pair := range strings.SplitSeq(s, ";") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return cniArgs{}, types.NewError(cniapi.CodeEnvironment, fmt.Sprintf("CNI_ARGS: %q is no KEY=VALUE pair", pair), "separate pairs by semicolons")
		}
		switch key {
		case "K8S_POD_NAMESPACE":
			a.pod.Namespace = value
		case "K8S_POD_NAME":
			a.pod.Name = value
		case "K8S_POD_UID":
			a.pod.UID = value
		case "IP":
			a.IPs = strings.Split(value, ",")
		case "MAC":
			a.MAC = value
		}
	}
	return a, nil
}

// pick returns the addresses and the MAC that the runtime asked for: the
// capability first, then args in the configuration, then CNI_ARGS.
func pick(conf *netConf, args cniArgs) (ips []netip.Addr, mac string, err error) {
	sources := []struct {
		name string
		wishes
	}{
		{"runtimeConfig", conf.RuntimeConfig}, {"args.cni", conf.Args.CNI}, {"CNI_ARGS", args.wishes},
	}
	for _, src := range sources {
		if mac == "" {
			mac = src.MAC
		}
		if len(ips) > 0 {
			continue
		}
		for _, s := range src.IPs {
			ip, err := parseIP(s)
			if err != nil {
				return nil, "", types.NewError(cniapi.CodeConfig, fmt.Sprintf("%s: requested address %q is no IP address", src.name, s), "use the form 10.0.0.5 or 10.0.0.5/24")
			}
			ips = append(ips, ip)
		}
	}
	return ips, mac, nil
}

// parseIP reads an address with or without a prefix length; the range decides on the length.
func parseIP(s string) (netip.Addr, error) {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "/") {
		p, err := netip.ParsePrefix(s)
		return p.Addr().Unmap(), err
	}
	ip, err := netip.ParseAddr(s)
	return ip.Unmap(), err
}
