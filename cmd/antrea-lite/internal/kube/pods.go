package kube

import (
	"context"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/antrea-lite/podnet/ifstore"
)

// Pods follows the Pods of one Node.
type Pods struct {
	client   kubernetes.Interface
	informer cache.SharedIndexInformer
	lister   corelisters.PodLister
	factory  informers.SharedInformerFactory
}

// NewPods returns a Pods that follows nothing before Run.
func NewPods(client kubernetes.Interface, node string) (*Pods, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", node).String()
		}),
		informers.WithTransform(slim))
	pods := factory.Core().V1().Pods()
	p := &Pods{client: client, factory: factory, informer: pods.Informer(), lister: pods.Lister()}
	return p, nil
}

// slim keeps of a Pod what is used here: a node may have hundreds.
func slim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	annotations := map[string]string{}
	if v, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]; ok {
		annotations[corev1.MirrorPodAnnotationKey] = v
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, Annotations: annotations},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, HostNetwork: pod.Spec.HostNetwork, ReadinessGates: pod.Spec.ReadinessGates},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, Conditions: pod.Status.Conditions},
	}, nil
}

// Run follows the Pods until ctx ends.
func (p *Pods) Run(ctx context.Context) error {
	p.informer.RunWithContext(ctx)
	return nil
}

// Synced reports whether the first list has been read.
func (p *Pods) Synced() bool { return p.informer.HasSynced() }

// Get returns what is known of a Pod.
func (p *Pods) Get(namespace, name string) (*corev1.Pod, bool) {
	pod, err := p.lister.Pods(namespace).Get(name)
	return pod, err == nil
}

// OnChange calls fn for every Pod that came, changed or went. fn must not block.
func (p *Pods) OnChange(fn func(namespace, name string)) error {
	call := func(obj any) {
		if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		if pod, ok := obj.(*corev1.Pod); ok {
			fn(pod.Namespace, pod.Name)
		}
	}
	_, err := p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: call, UpdateFunc: func(_, obj any) { call(obj) }, DeleteFunc: call})
	if err != nil {
		return fmt.Errorf("kubernetes: follow Pods: %w", err)
	}
	return nil
}

// Gone reports whether a Pod has left the API server for good. What is cached
// may be old (ovn-k#6375), so only the API server itself can say yes; what it
// cannot be asked is an error, never a yes.
func (p *Pods) Gone(ctx context.Context, pod ifstore.Pod) (bool, error) {
	if cached, ok := p.Get(pod.Namespace, pod.Name); ok && same(cached, pod) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	live, err := p.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		// A static Pod runs without the API server's knowledge while its mirror is
		// refused, or deleted by somebody: only its container can tell.
		return !static(pod.UID), nil
	case err != nil:
		return false, fmt.Errorf("kubernetes: ask for Pod %s: %w", pod, err)
	}
	return !same(live, pod), nil
}

// same tells whether an API object is the Pod of an interface. The runtime gives
// a static Pod the hash of its file as UID, its mirror in the API has another.
func same(obj *corev1.Pod, pod ifstore.Pod) bool {
	return pod.UID == "" || string(obj.UID) == pod.UID || obj.Annotations[corev1.MirrorPodAnnotationKey] == pod.UID
}

// static tells by a UID whether the kubelet gave it, to a Pod of a file: the
// hexadecimal digits of a hash. The API server gives UUIDs, which have hyphens.
func static(uid string) bool {
	_, err := hex.DecodeString(uid)
	return err == nil && len(uid) == 32
}
