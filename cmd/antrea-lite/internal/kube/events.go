package kube

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

const (
	// controllerName is what events carry as their reporting controller.
	controllerName = "podnet.antrea-lite.io/agent"
	// maxNote is the API's limit for an event's note, in bytes.
	maxNote = 1024
	// maxName and maxInstance are its limits for an event's name and its reporting instance.
	maxName, maxInstance = 253, 128
	// maxPending bounds the events that wait for the API server: more Pods than a node can have.
	maxPending = 1024
	// requestTime bounds one request. A slow API server gets the time it needs under load.
	requestTime = 30 * time.Second
)

// Recorder writes Pod events to the API server. It implements podnet.Events:
// Event never blocks; of a sandbox whose event could not be written yet only the
// latest is kept, and what is kept is bounded.
//
// client-go's own recorder is not used: it keeps a history in order, so a Pod
// would be told it is not ready after it is, and it gives up after some tries.
type Recorder struct {
	client kubernetes.Interface
	node   string
	queue  *queue[ifstore.Key]
	said   complaints

	mu      sync.Mutex
	latest  map[ifstore.Key]podnet.Event
	dropped uint64
	refused uint64
}

// NewRecorder returns a Recorder for the Pods of a node. It writes only in Run.
func NewRecorder(client kubernetes.Interface, node string) *Recorder {
	return &Recorder{client: client, node: node, latest: map[ifstore.Key]podnet.Event{}, queue: newQueue[ifstore.Key]()}
}

// Event takes an event to be written. It implements podnet.Events.
func (r *Recorder) Event(_ context.Context, e podnet.Event) {
	if e.Pod.Name == "" {
		return // no Kubernetes runs this container
	}
	r.mu.Lock()
	if _, known := r.latest[e.Key]; !known && len(r.latest) >= maxPending {
		r.dropped++
		r.mu.Unlock()
		return
	}
	r.latest[e.Key] = e
	r.mu.Unlock()
	r.queue.add(e.Key)
}

// Pending returns how many events wait for the API server.
func (r *Recorder) Pending() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.latest)
}

// Dropped returns how many events were lost because too many waited.
func (r *Recorder) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Refused returns how many events the API server did not want.
func (r *Recorder) Refused() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// Run writes events until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	return r.queue.run(ctx, r.write)
}

func (r *Recorder) write(ctx context.Context, key ifstore.Key) error {
	r.mu.Lock()
	e, ok := r.latest[key]
	r.mu.Unlock()
	if !ok {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	_, err := r.client.EventsV1().Events(e.Pod.Namespace).Create(limited, r.object(e), metav1.CreateOptions{})
	// A refusal is final: what a Pod was told too late helps nobody, and a role that
	// is missing is missing for every event to come.
	if err != nil && retryable(err) && !apierrors.IsForbidden(err) {
		klog.FromContext(ctx).V(2).Info("An event cannot be written now", "pod", e.Pod.String(), "type", e.Type, "err", err)
		return err
	}
	refused := err != nil && !apierrors.IsAlreadyExists(err)
	if !refused {
		r.said.well(e.Pod.Namespace)
	} else if r.said.news(e.Pod.Namespace, err) {
		klog.FromContext(ctx).Info("Events are not wanted; the next refusals of the kind are counted only", "pod", e.Pod.String(), "type", e.Type, "err", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if refused {
		r.refused++
	}
	if r.latest[key] == e {
		delete(r.latest, key)
		return nil
	}
	r.queue.add(key) // a newer one came meanwhile
	return nil
}

// retryable tells whether the same request may succeed later.
func retryable(err error) bool {
	switch {
	case apierrors.IsAlreadyExists(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return false
	case apierrors.IsForbidden(err):
		// The namespace goes away, and its Pods with it. Other refusals may be a role that is not there yet.
		return !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	}
	return true
}

// object words an event. Its name follows from what it says, so that a repeat
// of a request whose answer was lost is no second event.
func (r *Recorder) object(e podnet.Event) *eventsv1.Event {
	kind := corev1.EventTypeNormal
	if e.Type == podnet.NetworkNotReady {
		kind = corev1.EventTypeWarning
	}
	id := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %d", e.Key, e.Type, e.Message, e.Time.UnixNano()))
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: e.Pod.Namespace, Name: eventName(e.Pod.Name, id[:8])},
		EventTime:           metav1.NewMicroTime(e.Time),
		ReportingController: controllerName,
		ReportingInstance:   cut(r.node, maxInstance),
		Action:              "PlugIn",
		Reason:              string(e.Type),
		Type:                kind,
		Note:                cut(e.Message, maxNote),
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name,
			UID: types.UID(e.Pod.UID)},
	}
}

// eventName makes a name that the API takes, of a Pod that may have the longest it takes.
func eventName(pod string, id []byte) string {
	pod = pod[:min(len(pod), maxName-1-2*len(id))]
	return fmt.Sprintf("%s.%x", strings.TrimRight(pod, "-."), id)
}

// cut shortens s to at most n bytes, at the start of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const dots = "..."
	end := 0
	for i := range s {
		if i > n-len(dots) {
			break
		}
		end = i
	}
	return s[:end] + dots
}
