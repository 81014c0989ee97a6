package cluster

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// identities are the holders of certificates: the control plane's components,
// the administrator, and each node's kubelet.
func (c *Cluster) identities() []identity {
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	addresses := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	for _, p := range c.cfg.fabric(1) {
		addresses = append(addresses, p.Addr())
	}
	for _, cidr := range c.cfg.ServiceCIDRs() {
		// The API server takes the first address of each Service range.
		addresses = append(addresses, netip.MustParsePrefix(cidr).Addr().Next())
	}
	ids := []identity{
		{name: "apiserver", user: "kube-apiserver", names: names, addresses: addresses},
		{name: "apiserver-kubelet", user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		{name: "admin", user: "admin", groups: []string{"system:masters"}},
		{name: "controllers", user: "system:kube-controller-manager"},
		{name: "scheduler", user: "system:kube-scheduler"},
		{name: "proxy", user: "system:kube-proxy"},
	}
	for _, n := range c.nodes {
		id := identity{name: "kubelet-" + n.Name, user: "system:node:" + n.Name, groups: []string{"system:nodes"}, names: []string{n.Name}}
		for _, p := range c.cfg.fabric(n.number) {
			id.addresses = append(id.addresses, p.Addr())
		}
		ids = append(ids, id)
	}
	return ids
}

// controlSpec describes the control plane's namespaces and processes.
func (c *Cluster) controlSpec() spec {
	dir := filepath.Join(c.cfg.Dir, controlName)
	pki := func(file string) string { return filepath.Join(c.cfg.Dir, "pki", file) }
	program := func(name string) string { return filepath.Join(c.cfg.Parts.Kubeall, name) }
	const etcd = "http://127.0.0.1:2379"
	// Without these QPS the controllers' start alone takes 5 s longer.
	client := func(name string) []string {
		conf := pki(name + ".kubeconfig")
		return []string{"--kubeconfig=" + conf, "--authentication-kubeconfig=" + conf, "--authorization-kubeconfig=" + conf,
			"--leader-elect=false", "--kube-api-qps=500", "--kube-api-burst=1000"}
	}
	services := strings.Join(c.cfg.ServiceCIDRs(), ",")
	return spec{
		Name: controlName, Dir: dir,
		Sysctls: c.forwarding(),
		Units: []unit{
			{Name: "etcd", Start: true, Args: []string{program("etcd"),
				"--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
				"--listen-peer-urls", "http://127.0.0.1:2380", "--log-level", "warn", "--unsafe-no-fsync=true"}},
			{Name: apiserverUnit, Start: true, Args: []string{program("kube-apiserver"),
				"--etcd-servers=" + etcd, "--bind-address=0.0.0.0", fmt.Sprint("--secure-port=", apiPort), "--advertise-address=" + ControlPlane().String(),
				"--tls-cert-file=" + pki("apiserver.crt"), "--tls-private-key-file=" + pki("apiserver.key"), "--client-ca-file=" + pki("ca.crt"),
				"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
				"--service-account-signing-key-file=" + pki("service-accounts.key"), "--service-account-key-file=" + pki("service-accounts.key"),
				"--kubelet-client-certificate=" + pki("apiserver-kubelet.crt"), "--kubelet-client-key=" + pki("apiserver-kubelet.key"),
				"--kubelet-certificate-authority=" + pki("ca.crt"),
				// The nodes' names are in no DNS.
				"--kubelet-preferred-address-types=InternalIP",
				"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
				"--service-cluster-ip-range=" + services, "--allow-privileged=true"}},
			// These two end at once when the API server has not made their roles yet: Up starts them.
			{Name: "kube-controller-manager", Args: append([]string{program("kube-controller-manager"),
				"--service-account-private-key-file=" + pki("service-accounts.key"), "--root-ca-file=" + pki("ca.crt"),
				"--use-service-account-credentials=true", "--allocate-node-cidrs=true",
				"--cluster-cidr=" + strings.Join(c.cfg.PodCIDRs(), ","), "--service-cluster-ip-range=" + services,
				"--cluster-signing-cert-file=" + pki("ca.crt"), "--cluster-signing-key-file=" + pki("ca.key"),
				"--flex-volume-plugin-dir=" + filepath.Join(dir, "flex")}, client("controllers")...)},
			{Name: "kube-scheduler", Args: append([]string{program("kube-scheduler")}, client("scheduler")...)},
		},
	}
}

// apiserverUnit is the API server's name in Stop and Start.
const apiserverUnit = "kube-apiserver"

// forwarding makes a namespace a router for the cluster's families.
func (c *Cluster) forwarding() map[string]string {
	sysctls := map[string]string{"net/ipv4/ip_forward": "1"}
	if c.cfg.DualStack {
		sysctls["net/ipv6/conf/all/forwarding"] = "1"
	}
	return sysctls
}
