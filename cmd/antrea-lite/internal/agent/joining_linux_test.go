package agent

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// apiAddress is where the agents of these tests look for an API server.
const apiAddress = "127.0.0.1:6443"

// inCluster makes the node one of a cluster whose API server is away.
func (n *node) inCluster() {
	n.t.Helper()
	kubeconfig := filepath.Join(n.dir, "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://%s"}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u}]}`, apiAddress)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.conf.PodCIDRs = nil
	n.conf.MTU = 1500
	n.conf.Kubernetes = config.Kubernetes{NodeName: "n1", Kubeconfig: kubeconfig}
}

// apiServer serves the node's own Node and Pod default/a, until the test ends, and lists nothing.
func (n *node) apiServer(cidr string) {
	n.t.Helper()
	objects := map[string]any{
		"/api/v1/nodes/n1":                  map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "n1", "uid": "u1"}, "spec": map[string]any{"podCIDRs": []string{cidr}}},
		"/api/v1/namespaces/default/pods/a": map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "default", "name": "a", "uid": "u2"}},
	}
	mux := http.NewServeMux()
	for path, object := range objects {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(object)
		})
	}
	l, err := net.Listen("tcp", apiAddress)
	if err != nil {
		n.t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(mux)
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	n.t.Cleanup(srv.Close)
}

// A node boots while the API server is away: no probe restarts the agent, and who
// asks is told what it waits for.
func TestFirstBootWithoutAnAPIServer(t *testing.T) {
	n := newNode(t)
	n.inCluster()
	n.conf.CNIConfDir = filepath.Join(n.dir, "net.d")
	n.namespace("a")
	// Of the boot before; it would have Pods started here.
	old := filepath.Join(n.conf.CNIConfDir, confName)
	if err := os.MkdirAll(n.conf.CNIConfDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.until("the reason is known", func() error {
		if _, page := n.page("/readyz"); !strings.Contains(page, "[-] node: ") || !strings.Contains(page, "connection refused") {
			return fmt.Errorf("page %q", page)
		}
		return nil
	})
	if status, page := n.page("/healthz"); status != http.StatusOK || !strings.Contains(page, "[-] node: ") {
		t.Errorf("/healthz: %d %s", status, page)
	}
	if status, page := n.page("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d %s", status, page)
	}
	if status, page := n.page("/metrics"); status != http.StatusOK || !strings.Contains(page, "antrea_lite_build_info") {
		t.Errorf("/metrics: %d %s", status, page)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("the CNI configuration of an earlier boot: %v", err)
	}
	for _, verb := range []string{"ADD", "DEL", "GC"} {
		_, err := n.cni(verb, "a", `, "cni.dev/valid-attachments": []`)
		wantCode(t, verb, err, cniapi.CodeTryAgain, "connection refused", "n1")
	}
	_, err := n.cni("STATUS", "", "")
	wantCode(t, "STATUS", err, cniapi.CodeUnavailable, "connection refused")
	var s api.Status
	if err := n.get(api.PathStatus, "", &s); err != nil || s.Ready || s.PID != os.Getpid() || len(s.Parts) != 1 || s.Parts[0].OK {
		t.Errorf("status %+v %v", s, err)
	}
	var findings []api.Finding
	if err := n.get(api.PathCheck, "", &findings); err != nil || len(findings) != 1 || findings[0].Level != api.Fail || findings[0].Remedy == "" {
		t.Errorf("check %+v %v", findings, err)
	}
	for _, path := range []string{api.PathPorts, api.PathEvents, api.PathFlows} {
		wantCode(t, path, n.get(path, "x", &struct{}{}), cniapi.CodeTryAgain, "connection refused")
	}

	n.apiServer("10.10.0.0/24")
	n.until("STATUS is well", func() error { _, err := n.cni("STATUS", "", ""); return err })
	out, err := n.cni("ADD", "a", "")
	if err != nil || !strings.HasPrefix(address(t, out).String(), "10.10.0.") {
		t.Fatalf("ADD: %v %s", err, out)
	}
	if status, page := n.page("/readyz"); status != http.StatusOK || !strings.Contains(page, "[!] other nodes: ") {
		t.Errorf("/readyz: %d %s; this API server lists no nodes", status, page)
	}
	n.unplug("a")
}

// An agent that is told to end while it waits for its Node ends well.
func TestEndWhileTheAPIServerIsAway(t *testing.T) {
	n := newNode(t)
	n.inCluster()
	n.start()
	n.halt()
	if strings.Contains(n.log.String(), "Bridge and gateway") {
		t.Error("it began work without knowing its node")
	}
}
