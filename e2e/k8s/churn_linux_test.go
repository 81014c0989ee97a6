package k8s

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/antrea-lite/podnet/e2e/k8s/workload"
)

// stage is how far a Pod is let come before it is deleted, and how.
type stage struct {
	name    string
	reached func(*corev1.Pod) bool
	grace   int64 // 0: the API server forgets the Pod before its node has ended it
}

var stages = []stage{
	{"just created", func(*corev1.Pod) bool { return true }, 1},
	{"its container is being created", creating, 1},
	{"its container is being created, by force", creating, 0},
	{"running", running, 1},
	{"running, by force", running, 0},
}

func creating(p *corev1.Pod) bool {
	return len(p.Status.ContainerStatuses) > 0 && (p.Status.ContainerStatuses[0].State.Waiting != nil || running(p))
}

func running(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }

// atATime is how many Pods of the churn are there at a time: enough to keep both
// nodes busy, few enough for most to come to the stage that they are for.
const atATime = 24

// TestChurn creates and deletes Pods at every stage of their lives. What they
// were given has to come back: newWorld looks at both nodes when it ends.
func TestChurn(t *testing.T) {
	w := newWorld(t)
	pods := w.Client().CoreV1().Pods(w.namespace)
	events, err := pods.Watch(w.ctx, metav1.ListOptions{})
	w.must(err)
	defer events.Stop()
	began := time.Now()
	alive, begun := map[string]bool{}, 0 // a Pod is false once it has been deleted
	deleted, ran := map[string]int{}, 0
	for begun < options.churn || len(alive) > 0 {
		for begun < options.churn && len(alive) < atATime {
			name := fmt.Sprint("p", begun)
			w.create(workload.Light(w.namespace, name, w.Nodes()[begun%len(w.Nodes())].Name))
			alive[name], begun = true, begun+1
		}
		select {
		case <-time.After(patience):
			t.Fatalf("nothing happens: %d Pods created, %d there", begun, len(alive))
		case e, open := <-events.ResultChan():
			p, ok := e.Object.(*corev1.Pod)
			if !open || !ok {
				t.Fatalf("the watch of Pods ended: %v", e.Object)
			}
			if e.Type == watch.Deleted {
				delete(alive, p.Name)
				if !p.Status.StartTime.IsZero() && len(p.Status.PodIPs) > 0 {
					ran++
				}
				continue
			}
			if s := stageOf(p.Name); alive[p.Name] && s.reached(p) {
				alive[p.Name] = false
				deleted[s.name]++
				err := pods.Delete(w.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To(s.grace)})
				if err != nil && !apierrors.IsNotFound(err) {
					t.Fatal(err)
				}
			}
		}
	}
	took := time.Since(began)
	t.Logf("%d Pods in %s, %.1f a second; %d had an address when they went; deleted when %v",
		begun, took.Round(time.Millisecond), float64(begun)/took.Seconds(), ran, deleted)
	for _, n := range w.Nodes() {
		w.start("after-on-"+n.Name, n)
	}
	w.allAnswer()
}

// stageOf tells from a Pod's name when it is to be deleted. Pods of one stage are on both nodes.
func stageOf(name string) stage {
	var number int
	if _, err := fmt.Sscanf(name, "p%d", &number); err != nil {
		return stages[0]
	}
	return stages[number/2%len(stages)]
}

// TestSandboxChurn replaces a Pod by one of the same name again and again without
// waiting for its end, as a StatefulSet does whose node seems lost: sandboxes of
// several lives of the name are there at the same time.
func TestSandboxChurn(t *testing.T) {
	const lives = 20
	w := newWorld(t)
	n := w.Nodes()[0]
	pods := w.Client().CoreV1().Pods(w.namespace)
	began := time.Now()
	for life := range lives {
		w.create(testPod(w.namespace, "web-0", n.Name))
		if life == lives-1 {
			break
		}
		s := stages[life%len(stages)]
		w.until(fmt.Sprintf("life %d has come to stage %q", life, s.name), func() error {
			p, err := pods.Get(w.ctx, "web-0", metav1.GetOptions{})
			if err == nil && !s.reached(p) {
				err = fmt.Errorf("it is %s", p.Status.Phase)
			}
			return err
		})
		w.must(pods.Delete(w.ctx, "web-0", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
	}
	p := w.ready("web-0", n)
	t.Logf("%d lives in %s", lives, since(began))
	for _, to := range p.addrs() {
		for _, n := range w.Nodes() {
			host, _, err := curl(w.ctx, n.NetNS(), netip.AddrPortFrom(to, httpPort))
			if err := orWrong(err, host, "web-0"); err != nil {
				t.Errorf("%s by %s: %v", n.Name, family(to), err)
			}
		}
	}
	if options.network == "antrea-lite" {
		w.until("the earlier lives have no port", func() error {
			out, err := n.Run(w.ctx, "ovs-vsctl", "--timeout=10", "--bare", "--columns=external_ids", "find", "Port", "external_ids:pod-namespace="+w.namespace)
			if err == nil && (strings.Count(out, "pod-name=web-0") != 1 || !strings.Contains(out, string(p.UID))) {
				err = fmt.Errorf("UID %s has to have the only port:\n%s", p.UID, out)
			}
			return err
		})
	}
}
