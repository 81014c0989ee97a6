package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Lifetimes ends work for Pods that have left the API server. An ADD may wait as
// long as the runtime lets it; for a Pod that was deleted, or made anew under its
// name, it would hold one of the runtime's few workers for nothing.
type Lifetimes struct {
	pods  *Pods
	queue *queue[types.NamespacedName]

	mu    sync.Mutex
	bound map[types.NamespacedName]map[*lifetime]struct{}
}

// lifetime is a context that ends with its Pod.
type lifetime struct {
	pod ifstore.Pod
	end context.CancelCauseFunc
}

// NewLifetimes returns a Lifetimes that ends nothing before Run.
func NewLifetimes(pods *Pods) (*Lifetimes, error) {
	l := &Lifetimes{pods: pods, queue: newQueue[types.NamespacedName](), bound: map[types.NamespacedName]map[*lifetime]struct{}{}}
	return l, pods.OnChange(func(namespace, name string) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if len(l.of(key)) > 0 {
			l.queue.add(key)
		}
	})
}

// Bind returns a context that ends, with an error that is podnet.ErrOvertaken,
// when the Pod has left the API server. The caller must call stop.
func (l *Lifetimes) Bind(ctx context.Context, pod ifstore.Pod) (bound context.Context, stop func()) {
	bound, end := context.WithCancelCause(ctx)
	key, mine := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, &lifetime{pod, end}
	l.mu.Lock()
	if l.bound[key] == nil {
		l.bound[key] = map[*lifetime]struct{}{}
	}
	l.bound[key][mine] = struct{}{}
	l.mu.Unlock()
	// It may have gone before; nothing would tell that again.
	l.queue.add(key)
	return bound, func() {
		l.mu.Lock()
		delete(l.bound[key], mine)
		if len(l.bound[key]) == 0 {
			delete(l.bound, key)
		}
		l.mu.Unlock()
		end(nil)
	}
}

// Run looks after bound contexts until ctx ends.
func (l *Lifetimes) Run(ctx context.Context) error { return l.queue.run(ctx, l.look) }

func (l *Lifetimes) look(ctx context.Context, key types.NamespacedName) error {
	var errs []error
	for _, life := range l.of(key) {
		gone, err := l.pods.Gone(ctx, life.pod)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if gone {
			life.end(fmt.Errorf("%w: Pod %s with UID %q is gone%s", podnet.ErrOvertaken, life.pod, life.pod.UID, l.successor(key)))
		}
	}
	return errors.Join(errs...)
}

// successor names the Pod that has the name now, as far as that is known.
func (l *Lifetimes) successor(key types.NamespacedName) string {
	other, ok := l.pods.Get(key.Namespace, key.Name)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; the Pod of that name has UID %q now", other.UID)
}

func (l *Lifetimes) of(key types.NamespacedName) []*lifetime {
	l.mu.Lock()
	defer l.mu.Unlock()
	lives := make([]*lifetime, 0, len(l.bound[key]))
	for life := range l.bound[key] {
		lives = append(lives, life)
	}
	return lives
}
