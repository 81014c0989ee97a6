package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

// apiServer is an API server with the Nodes and Pods of a client-go fake.
type apiServer struct {
	*fake.Clientset
	ended chan struct{} // closed at the test's end: no watch lasts longer
}

// join makes the agent one of a cluster whose API server has these objects.
func (n *node) join(objects ...runtime.Object) apiServer {
	n.t.Helper()
	a := apiServer{fake.NewClientset(objects...), make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes/{name}", func(w http.ResponseWriter, r *http.Request) {
		obj, err := a.CoreV1().Nodes().Get(r.Context(), r.PathValue("name"), metav1.GetOptions{})
		answerObject(w, obj, err)
	})
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", func(w http.ResponseWriter, r *http.Request) {
		obj, err := a.CoreV1().Pods(r.PathValue("namespace")).Get(r.Context(), r.PathValue("name"), metav1.GetOptions{})
		answerObject(w, obj, err)
	})
	mux.HandleFunc("GET /api/v1/nodes", a.listOrWatch)
	mux.HandleFunc("GET /api/v1/pods", a.listOrWatch)
	server := httptest.NewServer(mux)
	n.t.Cleanup(func() { close(a.ended); server.Close() })
	kubeconfig := filepath.Join(n.dir, "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c"}}],
		"clusters": [{"name": "c", "cluster": {"server": %q}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.conf.Kubernetes.NodeName, n.conf.Kubernetes.Kubeconfig, n.conf.MTU = "n1", kubeconfig, 1400
	return a
}

// encode writes an object as the API server does, with its kind.
func encode(obj runtime.Object) ([]byte, error) {
	return runtime.Encode(scheme.Codecs.LegacyCodec(corev1.SchemeGroupVersion), obj)
}

// answerObject writes an object, or the Status of an error.
func answerObject(w http.ResponseWriter, obj runtime.Object, err error) {
	code := http.StatusOK
	if err != nil {
		status := apierrors.NewInternalError(err).Status()
		if known := apierrors.APIStatus(nil); errors.As(err, &known) {
			status = known.Status()
		}
		code, obj = int(status.Code), &status
	}
	raw, err := encode(obj)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client notices what it does not get.
	_, _ = w.Write(raw)
}

func (a apiServer) listOrWatch(w http.ResponseWriter, r *http.Request) {
	nodes, query := strings.HasSuffix(r.URL.Path, "nodes"), r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") != "":
		answerObject(w, nil, apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil)) // a client that hears that lists first
	case query.Get("watch") != "":
		a.watch(w, r, nodes)
	case nodes:
		list, err := a.CoreV1().Nodes().List(r.Context(), metav1.ListOptions{})
		answerObject(w, list, err)
	default:
		list, err := a.CoreV1().Pods("").List(r.Context(), metav1.ListOptions{})
		answerObject(w, list, err)
	}
}

func (a apiServer) watch(w http.ResponseWriter, r *http.Request, nodes bool) {
	watch := a.CoreV1().Pods("").Watch
	if nodes {
		watch = a.CoreV1().Nodes().Watch
	}
	events, err := watch(r.Context(), metav1.ListOptions{})
	if err != nil {
		answerObject(w, nil, err)
		return
	}
	defer events.Stop()
	w.Header().Set("Content-Type", "application/json")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case e := <-events.ResultChan():
			raw, err := encode(e.Object)
			if err != nil {
				return
			}
			_ = json.NewEncoder(w).Encode(metav1.WatchEvent{Type: string(e.Type), Object: runtime.RawExtension{Raw: raw}})
		case <-r.Context().Done():
			return
		case <-a.ended:
			return
		}
	}
}

// TestWaitingAddEndsWithItsPod: an ADD that waits for Open vSwitch ends at once
// when its Pod is deleted, and leaves nothing (ovn-k#1830).
func TestWaitingAddEndsWithItsPod(t *testing.T) {
	n := newNode(t)
	self := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.10.0.0/24"}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c1", UID: "u1"}, Spec: corev1.PodSpec{NodeName: "n1"}}
	a := n.join(self, pod)
	n.startReady()
	n.namespace("c1")
	if err := n.sw.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		cmd := n.call("ADD", "c1", n.netConf("net", ""))
		cmd.Env = append(cmd.Env, "CNI_ARGS=K8S_POD_NAMESPACE=default;K8S_POD_NAME=c1;K8S_POD_UID=u1")
		_, err := n.finish(cmd)
		ended <- err
	}()
	n.awaits("c1", "waiting", "number")
	select {
	case err := <-ended:
		t.Fatalf("ADD does not wait: %v", err)
	default:
	}
	begun := time.Now()
	if err := a.CoreV1().Pods("default").Delete(t.Context(), "c1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		t.Logf("ADD ended %s after the Pod", time.Since(begun).Round(time.Millisecond))
		wantCode(t, "ADD of a Pod that was deleted", err, cniapi.CodePodIsOther, "default/c1", `"u1"`, "gone")
	case <-time.After(patience):
		t.Fatal("ADD waits on although its Pod is gone")
	}
	if _, err := n.port("c1"); err == nil {
		t.Error("the interface is there still")
	}
	if err := n.sw.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
}
