package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// containerdSocket is where a node's containerd listens, in the node.
const containerdSocket = "/run/containerd/containerd.sock"

// nodeSpec describes a node's namespaces and processes, and writes their
// configuration files.
func (c *Cluster) nodeSpec(n *Node) (spec, error) {
	disk := filepath.Join(c.cfg.Disks, n.Name, "disk")
	conf := filepath.Join(n.dir, "conf")
	if err := os.MkdirAll(conf, 0o755); err != nil {
		return spec{}, err
	}
	for name, content := range map[string]string{
		"containerd.toml": containerdConfig,
		"kubelet.yaml":    c.kubeletConfig(n),
		"kube-proxy.yaml": c.proxyConfig(n),
	} {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(content), 0o644); err != nil {
			return spec{}, err
		}
	}
	addresses := make([]string, 0, 2)
	for _, p := range c.cfg.fabric(n.number) {
		addresses = append(addresses, p.Addr().String())
	}
	return spec{
		Name: n.Name, Dir: n.dir,
		Path:    []string{c.cfg.Parts.Containerd},
		Overlay: overlaid(), Disk: disk,
		// Own file systems, because containerd's snapshots cannot be on an overlay,
		// and empty directories where the machine might have files of its own.
		Binds: []string{"/var/lib/containerd", "/var/lib/kubelet", "/var/lib/cni", "/var/log/pods", "/var/log/containers", "/etc/cni", "/opt/cni"},
		Files: map[string]string{"/etc/resolv.conf": "nameserver " + ClusterDNS + "\n"},
		// The kubelet sets these for the whole machine. It is shown its own values.
		ShownSysctls: map[string]string{"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1"},
		Sysctls:      c.forwarding(),
		Units: []unit{
			{Name: "containerd", Start: true, Args: []string{"containerd", "--config", filepath.Join(conf, "containerd.toml")}},
			// Up starts these when the images are there.
			{Name: "kubelet", Args: []string{filepath.Join(c.cfg.Parts.Kubeall, "kubelet"), "--config=" + filepath.Join(conf, "kubelet.yaml"),
				"--kubeconfig=" + filepath.Join(c.cfg.Dir, "pki", "kubelet-"+n.Name+".kubeconfig"),
				"--hostname-override=" + n.Name, "--node-ip=" + strings.Join(addresses, ",")}},
			{Name: "kube-proxy", Args: []string{filepath.Join(c.cfg.Parts.Kubeall, "kube-proxy"), "--config=" + filepath.Join(conf, "kube-proxy.yaml")}},
		},
	}, nil
}

// SandboxImage is what holds a Pod's namespaces; images/pause.list makes it.
const SandboxImage = "registry.k8s.io/pause:3.10.2"

// restrict_oom_score_adj: root of a container or a small VM often lacks
// CAP_SYS_RESOURCE, without which runc cannot lower a score. containerd 2 reads
// version 2 as well and migrates it.
const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "` + containerdSocket + `"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + SandboxImage + `"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
`

// kubeletConfig: nothing is evicted, because the disk is the machine's.
// volumePluginDir is named because the default is made below /usr. Scenarios end
// containers on purpose, so what ends is started again soon.
func (c *Cluster) kubeletConfig(n *Node) string {
	pki := filepath.Join(c.cfg.Dir, "pki")
	return fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[1]q}}
authorization: {mode: Webhook}
tlsCertFile: %[2]q
tlsPrivateKeyFile: %[3]q
containerRuntimeEndpoint: unix://%[4]s
cgroupDriver: cgroupfs
cgroupRoot: /%[5]s
failCgroupV1: false
failSwapOn: false
maxPods: 250
clusterDomain: cluster.local
clusterDNS: [%[6]q]
resolvConf: /etc/resolv.conf
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%", imagefs.inodesFree: "0%%"}
imageGCHighThresholdPercent: 100
volumePluginDir: /var/lib/kubelet/volumeplugins
crashLoopBackOff: {maxContainerRestartPeriod: 1s}
`, filepath.Join(pki, "ca.crt"), filepath.Join(pki, "kubelet-"+n.Name+".crt"), filepath.Join(pki, "kubelet-"+n.Name+".key"),
		containerdSocket, c.cgroup(n), ClusterDNS)
}

// proxyConfig leaves the size of connection tracking alone, which is the
// machine's. Its times are the network namespace's.
func (c *Cluster) proxyConfig(n *Node) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: %q}
clusterCIDR: %q
hostnameOverride: %q
conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 24h, tcpCloseWaitTimeout: 1h}
`, filepath.Join(c.cfg.Dir, "pki", "proxy.kubeconfig"), strings.Join(c.cfg.PodCIDRs(), ","), n.Name)
}
