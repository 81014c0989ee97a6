package kube

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8stesting "k8s.io/client-go/testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func TestWorkEndsWithItsPod(t *testing.T) {
	remove := func(ctx context.Context, a *api) error {
		return a.CoreV1().Pods("ns").Delete(ctx, "web", metav1.DeleteOptions{})
	}
	for _, test := range []struct {
		name   string
		uid    string // of the Pod that the work is for
		change func(context.Context, *api) error
		ends   string // what the error says, "" while the work goes on
	}{
		{"the Pod stays", "u1", func(context.Context, *api) error { return nil }, ""},
		{"the Pod's status changes", "u1", func(ctx context.Context, a *api) error {
			changed := pod("web", "u1", true)
			_, err := a.CoreV1().Pods("ns").Update(ctx, changed, metav1.UpdateOptions{})
			return err
		}, ""},
		{"another Pod goes", "u1", func(ctx context.Context, a *api) error {
			return a.CoreV1().Pods("ns").Delete(ctx, "other", metav1.DeleteOptions{})
		}, ""},
		{"the Pod is deleted", "u1", remove, `"u1" is gone`},
		{"the Pod is made anew", "u1", func(ctx context.Context, a *api) error {
			if err := remove(ctx, a); err != nil {
				return err
			}
			_, err := a.CoreV1().Pods("ns").Create(ctx, pod("web", "u2", false), metav1.CreateOptions{})
			return err
		}, `"u1" is gone`},
		{"the Pod was another one before", "u0", func(context.Context, *api) error { return nil }, `has UID "u1" now`},
		{"its UID is not known", "", func(context.Context, *api) error { return nil }, ""},
		{"its UID is not known, it is deleted", "", remove, "gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAPI(pod("web", "u1", false), pod("other", "u9", false))
				l, stop := lifetimes(t, a)
				ctx, release := l.Bind(t.Context(), ifstore.Pod{Namespace: "ns", Name: "web", UID: test.uid})
				time.Sleep(time.Second)
				if err := test.change(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				err := context.Cause(ctx)
				if test.ends == "" && err != nil {
					t.Errorf("ended: %v", err)
				}
				if test.ends != "" && (!errors.Is(err, podnet.ErrOvertaken) || !strings.Contains(err.Error(), test.ends)) {
					t.Errorf("ended with %v, want %q", err, test.ends)
				}
				release()
				stop()
				if len(l.bound) != 0 {
					t.Errorf("still bound: %v", l.bound)
				}
			})
		})
	}
}

// What the API server cannot be asked is no reason to end anything; it is asked again.
func TestWorkOutlivesAnAPIServerThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		a.set(func(action k8stesting.Action) error {
			if action.GetVerb() == "get" {
				return errors.New("connection refused")
			}
			return nil
		})
		l, stop := lifetimes(t, a)
		ctx, release := l.Bind(t.Context(), ifstore.Pod{Namespace: "ns", Name: "web", UID: "u1"})
		time.Sleep(10 * time.Minute)
		if ctx.Err() != nil {
			t.Errorf("ended: %v", context.Cause(ctx))
		}
		a.set(nil)
		time.Sleep(time.Minute)
		if !errors.Is(context.Cause(ctx), podnet.ErrOvertaken) {
			t.Errorf("the API server has no such Pod, the work ended with %v", context.Cause(ctx))
		}
		release()
		stop()
	})
}

func lifetimes(t *testing.T, a *api) (l *Lifetimes, stop func()) {
	t.Helper()
	pods, err := NewPods(a, "n1")
	if err != nil {
		t.Fatal(err)
	}
	if l, err = NewLifetimes(pods); err != nil {
		t.Fatal(err)
	}
	stop = running(t, pods.Run, l.Run)
	time.Sleep(time.Second)
	return l, stop
}
