package k8s

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/antrea-lite/podnet/e2e/k8s/cluster"
)

// TestAgentsMayWriteTheirConditionOnly: whoever breaks into a node and takes the
// agent's token can say nothing about Pods but whether those of this node have
// their network.
func TestAgentsMayWriteTheirConditionOnly(t *testing.T) {
	w := newAntreaLite(t)
	n1, n2 := w.Nodes()[0], w.Nodes()[1]
	w.start("own", n1)
	w.start("foreign", n2)
	agent := w.asAgent(n1)
	const (
		condition = `{"status":{"conditions":[{"type":"podnet.antrea-lite.io/NetworkReady","status":"True","message":%q}]}}`
		otherNode = "Pods on its own node only"
		otherCond = "condition podnet.antrea-lite.io/NetworkReady only"
		metadata  = "may not write metadata"
		status    = "nothing of a Pod's status but its condition"
	)
	mine := fmt.Sprintf(condition, "mine")
	for _, test := range []struct {
		name, pod, patch string
		refused          string // what the API server says, "" when it is allowed
	}{
		{"its condition", "own", mine, ""},
		{"its condition, changed", "own", fmt.Sprintf(condition, "again"), ""},
		{"its condition on another node", "foreign", mine, otherNode},
		{"Ready", "own", `{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`, otherCond},
		{"ContainersReady", "own", `{"status":{"conditions":[{"type":"ContainersReady","status":"False"}]}}`, otherCond},
		{"another gate", "own", `{"status":{"conditions":[{"type":"example.com/Gate","status":"True"}]}}`, otherCond},
		{"another's condition beside its own", "own", `{"status":{"conditions":[{"type":"podnet.antrea-lite.io/NetworkReady","status":"False"},{"type":"Ready","status":"False"}]}}`, otherCond},
		{"removal of a condition", "own", `{"status":{"conditions":[{"$patch":"delete","type":"Ready"}]}}`, otherCond},
		{"removal of all conditions", "own", `{"status":{"conditions":null}}`, otherCond},
		{"a label", "own", `{"metadata":{"labels":{"app":"web"}}}`, metadata},
		{"removal of labels", "own", `{"metadata":{"labels":null}}`, metadata},
		{"an annotation", "own", `{"metadata":{"annotations":{"a":"b"}}}`, metadata},
		{"a finalizer", "own", `{"metadata":{"finalizers":["example.com/hold"]}}`, metadata},
		{"a label on another node", "foreign", `{"metadata":{"labels":{"app":"web"}}}`, otherNode},
		{"phase", "own", `{"status":{"phase":"Failed"}}`, status},
		{"message", "own", `{"status":{"message":"x"}}`, status},
		{"reason", "own", `{"status":{"reason":"Evicted"}}`, status},
		{"address", "own", `{"status":{"podIP":"192.0.2.1","podIPs":[{"$patch":"replace"},{"ip":"192.0.2.1"}]}}`, status},
		{"host address", "own", `{"status":{"hostIP":"192.0.2.1","hostIPs":[{"$patch":"replace"},{"ip":"192.0.2.1"}]}}`, status},
		{"start time", "own", `{"status":{"startTime":"2020-01-01T00:00:00Z"}}`, status},
		{"container statuses", "own", `{"status":{"containerStatuses":[{"name":"testpod","image":"x","imageID":"","ready":true,"restartCount":7}]}}`, status},
		{"observed generation", "own", `{"status":{"observedGeneration":77}}`, status},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := patchStatus(w, agent, test.pod, test.patch)
			if test.refused == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			// A refusal by a policy is "invalid" unless the policy names another reason.
			if test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("answer %v, want a refusal with %q", err, test.refused)
			}
		})
	}
	t.Run("with a token of no Pod", func(t *testing.T) {
		if err := patchStatus(w, w.withToken(metav1.NamespaceSystem, "antrea-lite", nil), "own", mine); err == nil || !strings.Contains(err.Error(), otherNode) {
			t.Errorf("answer %v, want a refusal with %q", err, otherNode)
		}
	})
}

func patchStatus(w *world, as kubernetes.Interface, pod, patch string) error {
	_, err := as.CoreV1().Pods(w.namespace).Patch(w.ctx, pod, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// asAgent is a client with the token that the kubelet gives the agent of a node.
func (w *world) asAgent(n *cluster.Node) kubernetes.Interface {
	w.t.Helper()
	p, err := w.agentOf(n)
	w.must(err)
	return w.withToken(metav1.NamespaceSystem, "antrea-lite", &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID})
}

// withToken is a client with a token of a ServiceAccount.
func (w *world) withToken(namespace, account string, boundTo *authenticationv1.BoundObjectReference) kubernetes.Interface {
	w.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(600)), BoundObjectRef: boundTo}}
	token, err := w.Client().CoreV1().ServiceAccounts(namespace).CreateToken(w.ctx, account, request, metav1.CreateOptions{})
	w.must(err)
	admin, err := w.REST()
	w.must(err)
	conf := rest.AnonymousClientConfig(admin)
	conf.BearerToken = token.Status.Token
	client, err := kubernetes.NewForConfig(conf)
	w.must(err)
	return client
}

// TestAgentsHaveLeastPrivilege lists all that the agent's role lets it do, and
// tries some of what it must not.
func TestAgentsHaveLeastPrivilege(t *testing.T) {
	w := newAntreaLite(t)
	agent := w.asAgent(w.Nodes()[0])
	everybody := rules(w, w.withToken(w.namespace, "default", nil))
	got := slices.DeleteFunc(rules(w, agent), func(rule string) bool { return slices.Contains(everybody, rule) })
	want := []string{
		"[create] [events.k8s.io] [events] []",
		"[get list watch] [] [nodes] []",
		"[get list watch] [] [pods] []",
		"[patch] [] [pods/status] []",
	}
	if !slices.Equal(got, want) {
		t.Errorf("beyond what every ServiceAccount may do, the agent may\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, a := range []authorizationv1.ResourceAttributes{
		{Verb: "patch", Resource: "pods"}, {Verb: "update", Resource: "pods", Subresource: "status"}, {Verb: "delete", Resource: "pods"},
		{Verb: "create", Resource: "pods"}, {Verb: "create", Resource: "pods", Subresource: "binding"}, {Verb: "create", Resource: "pods", Subresource: "eviction"},
		{Verb: "get", Resource: "pods", Subresource: "exec"}, {Verb: "create", Resource: "pods", Subresource: "exec"}, {Verb: "get", Resource: "pods", Subresource: "log"},
		{Verb: "patch", Resource: "nodes"}, {Verb: "patch", Resource: "nodes", Subresource: "status"}, {Verb: "get", Resource: "nodes", Subresource: "proxy"},
		{Verb: "get", Resource: "secrets"}, {Verb: "list", Resource: "secrets"}, {Verb: "get", Resource: "configmaps"}, {Verb: "update", Resource: "configmaps"},
		{Verb: "create", Resource: "serviceaccounts", Subresource: "token"}, {Verb: "impersonate", Resource: "users"},
		{Verb: "list", Resource: "services"}, {Verb: "patch", Group: "discovery.k8s.io", Resource: "endpointslices"},
		{Verb: "delete", Group: "events.k8s.io", Resource: "events"}, {Verb: "list", Group: "events.k8s.io", Resource: "events"}, {Verb: "create", Resource: "events"},
		{Verb: "update", Group: "apps", Resource: "daemonsets"}, {Verb: "bind", Group: "rbac.authorization.k8s.io", Resource: "clusterroles"},
		{Verb: "delete", Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"},
	} {
		for _, namespace := range []string{w.namespace, metav1.NamespaceSystem} {
			a.Namespace = namespace
			review, err := agent.AuthorizationV1().SelfSubjectAccessReviews().Create(w.ctx,
				&authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}, metav1.CreateOptions{})
			w.must(err)
			if review.Status.Allowed {
				t.Errorf("the agent may %s %s/%s %s in %s", a.Verb, a.Group, a.Resource, a.Subresource, namespace)
			}
		}
	}
	// And so the API server says when it is tried.
	if err := agent.CoreV1().Pods(metav1.NamespaceSystem).DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "app=none"}); !apierrors.IsForbidden(err) {
		t.Errorf("deletion of Pods: %v, want it to be forbidden", err)
	}
}

// rules lists what a client may do in the test's namespace.
func rules(w *world, as kubernetes.Interface) []string {
	w.t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: w.namespace}}
	review, err := as.AuthorizationV1().SelfSubjectRulesReviews().Create(w.ctx, review, metav1.CreateOptions{})
	w.must(err)
	if review.Status.Incomplete {
		w.t.Fatalf("the API server lists the rules in part only: %s", review.Status.EvaluationError)
	}
	var all []string
	for _, r := range review.Status.ResourceRules {
		all = append(all, fmt.Sprint(r.Verbs, r.APIGroups, r.Resources, r.ResourceNames))
	}
	slices.Sort(all)
	return all
}
