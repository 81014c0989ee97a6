package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var eventKind = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}

// api is a client whose answers to one verb and resource a test decides.
type api struct {
	*fake.Clientset
	mu   sync.Mutex
	fail func(k8stesting.Action) error
}

func newAPI(objects ...runtime.Object) *api {
	a := &api{Clientset: fake.NewClientset(objects...)}
	a.PrependReactor("*", "*", func(action k8stesting.Action) (bool, runtime.Object, error) {
		a.mu.Lock()
		fail := a.fail
		a.mu.Unlock()
		if fail == nil {
			return false, nil, nil
		}
		err := fail(action)
		return err != nil, nil, err
	})
	return a
}

func (a *api) set(fail func(k8stesting.Action) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = fail
}

func (a *api) events(t *testing.T) (out []eventsv1.Event) {
	t.Helper()
	list, err := a.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// running starts fn in the bubble; the returned func ends it.
func running(t *testing.T, fns ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, fn := range fns {
		group.Go(func() {
			if err := fn(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return func() { cancel(); group.Wait() }
}

func event(n int, typ podnet.EventType) podnet.Event {
	return podnet.Event{Type: typ, Key: ifstore.Key{ContainerID: fmt.Sprint("c", n), IfName: "eth0"},
		Pod: ifstore.Pod{Namespace: "ns", Name: fmt.Sprint("pod", n), UID: fmt.Sprint("uid", n)}, Message: "the cause", Time: time.Now()}
}

func TestEventIsWhatKubectlShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		r := NewRecorder(a, "n1")
		stop := running(t, r.Run)
		r.Event(t.Context(), event(1, podnet.NetworkNotReady))
		r.Event(t.Context(), podnet.Event{Type: podnet.NetworkReady, Key: ifstore.Key{ContainerID: "no Pod"}})
		synctest.Wait()
		list := a.events(t)
		if len(list) != 1 {
			t.Fatalf("%d events, want 1", len(list))
		}
		e := list[0]
		want := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "ns", Name: "pod1", UID: "uid1"}
		if e.Regarding != want || e.Type != "Warning" || e.Reason != "NetworkNotReady" || e.Note != "the cause" || e.ReportingInstance != "n1" {
			t.Errorf("event %+v", e)
		}
		r.Event(t.Context(), event(1, podnet.NetworkReady))
		synctest.Wait()
		if list = a.events(t); len(list) != 2 || r.Pending() != 0 {
			t.Fatalf("%d events, %d pending", len(list), r.Pending())
		}
		stop()
	})
}

// While the API server is away the latest state wins, nothing blocks, and all is told afterwards.
func TestEventsSurviveAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		a.set(func(k8stesting.Action) error { return errors.New("connection refused") })
		r := NewRecorder(a, "n1")
		stop := running(t, r.Run)
		for n := range 100 {
			r.Event(t.Context(), event(n, podnet.NetworkNotReady))
		}
		time.Sleep(10 * time.Minute)
		for n := range 50 {
			r.Event(t.Context(), event(n, podnet.NetworkReady))
		}
		if r.Pending() != 100 {
			t.Errorf("%d pending, want 100: one for each Pod", r.Pending())
		}
		a.set(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		count := map[string]int{}
		for _, e := range a.events(t) {
			count[e.Reason]++
		}
		if count["NetworkReady"] != 50 || count["NetworkNotReady"] != 50 || r.Pending() != 0 {
			t.Errorf("events %v, %d pending", count, r.Pending())
		}
		stop()
	})
}

func TestEventsAreBounded(t *testing.T) {
	r := NewRecorder(newAPI(), "n1")
	for n := range maxPending + 10 {
		r.Event(t.Context(), event(n, podnet.NetworkNotReady))
	}
	r.Event(t.Context(), event(0, podnet.NetworkReady)) // a known one finds its place
	if r.Pending() != maxPending || r.Dropped() != 10 {
		t.Errorf("%d pending, %d dropped", r.Pending(), r.Dropped())
	}
}

func TestEventsThatAreRefusedForGood(t *testing.T) {
	terminating := apierrors.NewForbidden(eventKind, "x", errors.New("no"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, test := range []struct {
		name  string
		err   error
		again bool
	}{
		{"repeated after a lost answer", apierrors.NewAlreadyExists(eventKind, "x"), false},
		{"namespace is gone", apierrors.NewNotFound(eventKind, "x"), false},
		{"namespace goes", terminating, false},
		{"a role is missing", apierrors.NewForbidden(eventKind, "x", errors.New("no")), false},
		{"too many requests", apierrors.NewTooManyRequests("later", 1), true},
		{"server error", apierrors.NewInternalError(errors.New("etcd")), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI()
				a.set(func(k8stesting.Action) error { return test.err })
				r := NewRecorder(a, "n1")
				stop := running(t, r.Run)
				r.Event(t.Context(), event(1, podnet.NetworkNotReady))
				time.Sleep(time.Minute)
				synctest.Wait()
				if again := r.Pending() == 1; again != test.again {
					t.Errorf("kept for another try: %v, want %v", again, test.again)
				}
				if refused := r.Refused() == 1; refused == (test.again || apierrors.IsAlreadyExists(test.err)) {
					t.Errorf("counted as refused: %v", refused)
				}
				stop()
			})
		})
	}
}

// Of a hundred events that are refused for one cause the log has one line.
func TestRefusalsAreLoggedOncePerCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		a.set(func(k8stesting.Action) error { return apierrors.NewForbidden(eventKind, "x", errors.New("no")) })
		r := NewRecorder(a, "n1")
		var log strings.Builder
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&log))))
		stop := running(t, func(done context.Context) error {
			ctx, cancel := context.WithCancel(ctx)
			defer context.AfterFunc(done, cancel)()
			return r.Run(ctx)
		})
		tell := func(first, last int) {
			for n := first; n < last; n++ {
				r.Event(t.Context(), event(n, podnet.NetworkNotReady))
			}
			synctest.Wait()
		}
		tell(0, 100)
		if n := strings.Count(log.String(), "not wanted"); n != 1 || r.Refused() != 100 || r.Pending() != 0 {
			t.Errorf("%d lines, %d refused, %d pending", n, r.Refused(), r.Pending())
		}
		a.set(nil)
		tell(100, 101)
		a.set(func(k8stesting.Action) error { return apierrors.NewForbidden(eventKind, "x", errors.New("no")) })
		tell(101, 103)
		if n := strings.Count(log.String(), "not wanted"); n != 2 {
			t.Errorf("%d lines, want another one for the refusal after a success", n)
		}
		stop()
	})
}

func TestEventNamesAreValid(t *testing.T) {
	id := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	for _, pod := range []string{"web-0", strings.Repeat("a", 253), strings.Repeat("a", 234) + ".." + strings.Repeat("b", 17)} {
		if name := eventName(pod, id); len(validation.IsDNS1123Subdomain(name)) > 0 || !strings.HasPrefix(name, pod[:5]) {
			t.Errorf("%q: %v", name, validation.IsDNS1123Subdomain(name))
		}
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	for _, test := range []struct {
		in, want string
		n        int
	}{
		{"abc", "abc", 3}, {"abcdef", "ab...", 5}, {"ééééé", "é...", 6}, {"ééééé", "é...", 5}, {"", "", 4},
	} {
		if got := cut(test.in, test.n); got != test.want || len(got) > test.n {
			t.Errorf("cut(%q, %d) = %q, want %q", test.in, test.n, got, test.want)
		}
	}
}

func pod(name, uid string, gated bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: "n1"}}
	if gated {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: ConditionNetworkReady}}
	}
	return p
}

// network stands for the store of podnet.
type network struct {
	mu   sync.Mutex
	list []ifstore.Interface
}

func (n *network) set(list ...ifstore.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = list
}

func (n *network) byPod(namespace, name string) (out []ifstore.Interface) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, i := range n.list {
		if i.Pod.Namespace == namespace && i.Pod.Name == name {
			out = append(out, i)
		}
	}
	return out
}

func iface(container, uid string, state ifstore.State) ifstore.Interface {
	return ifstore.Interface{Key: ifstore.Key{ContainerID: container, IfName: "eth0"}, State: state,
		Pod: ifstore.Pod{Namespace: "ns", Name: "web", UID: uid}}
}

func TestConditions(t *testing.T) {
	late := func(container string) podnet.Event {
		return podnet.Event{Type: podnet.NetworkNotReady, Key: ifstore.Key{ContainerID: container, IfName: "eth0"}, Message: "no number",
			Pod: ifstore.Pod{Namespace: "ns", Name: "web", UID: "u1"}}
	}
	type step struct {
		ifaces []ifstore.Interface
		event  *podnet.Event
		want   string // "status reason message", "" when there is none
	}
	lateC1, readyC1 := late("c1"), late("c1")
	readyC1.Type = podnet.NetworkReady
	waiting, ready := iface("c1", "u1", ifstore.StateWaiting), iface("c1", "u1", ifstore.StateReady)
	second := ready
	second.IfName = "net1"
	for _, test := range []struct {
		name  string
		pod   *corev1.Pod
		steps []step
	}{
		{"a Pod with the gate is ready at once", pod("web", "u1", true), []step{
			{[]ifstore.Interface{waiting}, nil, ""},
			{[]ifstore.Interface{ready}, nil, "True NetworkReady"}}},
		{"nobody reads that of a Pod without the gate", pod("web", "u1", false), []step{
			{[]ifstore.Interface{ready}, nil, ""}}},
		{"a Pod that was late gets it without the gate", pod("web", "u1", false), []step{
			{[]ifstore.Interface{waiting}, &lateC1, "False NetworkNotReady no number"},
			{[]ifstore.Interface{ready}, &readyC1, "True NetworkReady"}}},
		{"a restart takes nothing back", pod("web", "u1", true), []step{
			{[]ifstore.Interface{ready}, nil, "True NetworkReady"},
			{[]ifstore.Interface{waiting}, nil, "True NetworkReady"},
			{nil, nil, "True NetworkReady"},
			{[]ifstore.Interface{waiting}, &lateC1, "False NetworkNotReady no number"}}},
		{"another life of the name says nothing", pod("web", "u2", true), []step{
			{[]ifstore.Interface{ready}, nil, ""}}},
		{"the newest sandbox counts", pod("web", "u1", true), []step{
			{[]ifstore.Interface{waiting, iface("c2", "u1", ifstore.StateReady)}, &lateC1, "True NetworkReady"},
			{[]ifstore.Interface{ready, iface("c2", "u1", ifstore.StateWaiting)}, nil, "True NetworkReady"}}},
		{"all interfaces count", pod("web", "u1", true), []step{
			{[]ifstore.Interface{waiting, second}, nil, ""},
			{[]ifstore.Interface{ready, second}, nil, "True NetworkReady"}}},
		{"what goes away does not count", pod("web", "u1", true), []step{
			{[]ifstore.Interface{iface("c1", "u1", ifstore.StateWithdrawing)}, nil, ""}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(test.pod)
				pods, err := NewPods(a, "n1")
				if err != nil {
					t.Fatal(err)
				}
				n := &network{}
				c, err := NewConditions(a, pods, n.byPod)
				if err != nil {
					t.Fatal(err)
				}
				stop := running(t, pods.Run, c.Run)
				time.Sleep(time.Second)
				for i, s := range test.steps {
					n.set(s.ifaces...)
					if s.event != nil {
						c.Event(t.Context(), *s.event)
					}
					for _, i := range s.ifaces {
						c.Changed([]podnet.Update{{Interface: i}})
					}
					time.Sleep(time.Second)
					synctest.Wait()
					obj, err := a.CoreV1().Pods("ns").Get(t.Context(), "web", metav1.GetOptions{})
					if err != nil {
						t.Fatal(err)
					}
					got := ""
					if have := condition(obj); have != nil {
						got = strings.TrimSpace(fmt.Sprint(have.Status, " ", have.Reason, " ", have.Message))
					}
					if got != s.want {
						t.Errorf("step %d: condition %q, want %q", i+1, got, s.want)
					}
				}
				stop()
			})
		})
	}
}

// A condition that could not be written is written when the API server is back.
func TestConditionsCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(pod("web", "u1", true))
		pods, err := NewPods(a, "n1")
		if err != nil {
			t.Fatal(err)
		}
		n := &network{}
		n.set(iface("c1", "u1", ifstore.StateReady))
		c, err := NewConditions(a, pods, n.byPod)
		if err != nil {
			t.Fatal(err)
		}
		a.set(func(action k8stesting.Action) error {
			if action.GetVerb() == "patch" {
				return errors.New("connection refused")
			}
			return nil
		})
		stop := running(t, pods.Run, c.Run)
		time.Sleep(10 * time.Minute)
		a.set(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		obj, err := a.CoreV1().Pods("ns").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || condition(obj) == nil || condition(obj).Status != corev1.ConditionTrue {
			t.Errorf("%+v %v", obj.Status, err)
		}
		stop()
	})
}

func TestGone(t *testing.T) {
	mirror := pod("web", "api", false)
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	away := errors.New("connection refused")
	for _, test := range []struct {
		name string
		live *corev1.Pod
		fail error
		ask  ifstore.Pod
		gone bool
		err  bool
	}{
		{"it is there", pod("web", "u1", false), nil, ifstore.Pod{Namespace: "ns", Name: "web", UID: "u1"}, false, false},
		{"its UID is not known", pod("web", "u1", false), nil, ifstore.Pod{Namespace: "ns", Name: "web"}, false, false},
		{"another life", pod("web", "u2", false), nil, ifstore.Pod{Namespace: "ns", Name: "web", UID: "u1"}, true, false},
		{"static Pod", mirror, nil, ifstore.Pod{Namespace: "ns", Name: "web", UID: "hash"}, false, false},
		{"nothing of the name", nil, nil, ifstore.Pod{Namespace: "ns", Name: "web", UID: "u1"}, true, false},
		{"static Pod whose mirror is refused", nil, nil, ifstore.Pod{Namespace: "ns", Name: "web", UID: "0f1e2d3c4b5a69788796a5b4c3d2e1f0"}, false, false},
		{"static Pod of another file", mirror, nil, ifstore.Pod{Namespace: "ns", Name: "web", UID: "0f1e2d3c4b5a69788796a5b4c3d2e1f0"}, true, false},
		{"cannot be asked", nil, away, ifstore.Pod{Namespace: "ns", Name: "web", UID: "u1"}, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI()
			if test.live != nil {
				a = newAPI(test.live)
			}
			a.set(func(k8stesting.Action) error { return test.fail })
			pods, err := NewPods(a, "n1") // its cache is empty: as old as can be
			if err != nil {
				t.Fatal(err)
			}
			gone, err := pods.Gone(t.Context(), test.ask)
			if gone != test.gone || (err != nil) != test.err {
				t.Errorf("%v %v, want %v, error %v", gone, err, test.gone, test.err)
			}
		})
	}
}

func nodeObject(name string, cidrs []string, addrs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: cidrs}}
	n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: name})
	for _, a := range addrs {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// The Node gets its range long after the agent began to ask (antrea#3950).
func TestWaitNode(t *testing.T) {
	say := func(error) {}
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		begun := time.Now()
		go func() {
			time.Sleep(20 * time.Second)
			if _, err := a.CoreV1().Nodes().Create(context.Background(), nodeObject("n1", nil, "192.0.2.1"), metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			time.Sleep(20 * time.Second)
			if _, err := a.CoreV1().Nodes().Update(context.Background(), nodeObject("n1", []string{"10.1.0.0/24", "fd00:1::/64"}, "192.0.2.1", "2001:db8::1"), metav1.UpdateOptions{}); err != nil {
				t.Error(err)
			}
		}()
		node, err := WaitNode(t.Context(), a, "n1", say)
		want := Node{Name: "n1", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00:1::/64")},
			Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}
		if err != nil || !reflect.DeepEqual(node, want) {
			t.Errorf("%+v %v", node, err)
		}
		if took := time.Since(begun); took < 40*time.Second || took > time.Minute {
			t.Errorf("after %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := WaitNode(ctx, a, "n2", say); err == nil || !strings.Contains(err.Error(), `"n2"`) {
			t.Errorf("error %v, want the Node's name", err)
		}
	})
}

func TestPeersFollowTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(nodeObject("self", []string{"10.1.0.0/24"}, "192.0.2.1"), nodeObject("young", nil, "192.0.2.9"),
			nodeObject("b", []string{"10.2.0.0/24"}, "192.0.2.2", "192.0.2.22"), nodeObject("odd", []string{"10.9.0.0"}, "192.0.2.3"))
		nodes := NewNodes(a, "self")
		changes := make(chan struct{}, 1)
		if err := nodes.OnChange(func() {
			select {
			case changes <- struct{}{}:
			default:
			}
		}); err != nil {
			t.Fatal(err)
		}
		stop := running(t, nodes.Run)
		time.Sleep(time.Second)
		peers, bad := nodes.Peers()
		if len(peers) != 1 || peers[0].Name != "b" || len(peers[0].Addresses) != 1 || len(bad) != 1 || !strings.Contains(bad[0].Error(), "odd") {
			t.Errorf("peers %+v, bad %v", peers, bad)
		}
		if self, ok := nodes.Self(); !ok || self.Name != "self" {
			t.Errorf("self %+v %v", self, ok)
		}
		<-changes
		// A heartbeat is no change.
		beat := nodeObject("b", []string{"10.2.0.0/24"}, "192.0.2.2", "192.0.2.22")
		beat.ResourceVersion, beat.Status.Conditions = "77", []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}}
		if _, err := a.CoreV1().Nodes().UpdateStatus(t.Context(), beat, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if len(changes) != 0 {
			t.Error("woken by a heartbeat")
		}
		if err := a.CoreV1().Nodes().Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		<-changes
		if peers, _ = nodes.Peers(); len(peers) != 0 {
			t.Errorf("peers %+v after b went", peers)
		}
		stop()
	})
}
