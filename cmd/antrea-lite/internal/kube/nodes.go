package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// Node is what the network of Pods needs of a Node object.
type Node struct {
	Name string
	// PodCIDRs: one of each family at most. Empty until the controller-manager has given them.
	PodCIDRs []netip.Prefix
	// Addresses of type InternalIP, one of each family at most.
	Addresses []netip.Addr
}

// Address returns the node's address of the family of a prefix, the zero Addr when it has none.
func (n Node) Address(like netip.Addr) netip.Addr {
	for _, a := range n.Addresses {
		if a.Is4() == like.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

// ErrNoPodCIDR: the Node has no Pod range yet.
var ErrNoPodCIDR = errors.New("no podCIDR yet")

// WaitNode asks for a Node until it has Pod ranges or ctx ends. What it waits
// for is logged whenever it changes, and told to say.
func WaitNode(ctx context.Context, client kubernetes.Interface, name string, say func(error)) (Node, error) {
	log, said := klog.FromContext(ctx), ""
	for pause := retryMin; ; pause = min(2*pause, retryMax/3) {
		node, err := getNode(ctx, client, name)
		if err == nil || ctx.Err() != nil {
			return node, err
		}
		if text := err.Error(); text != said {
			log.Info("Waiting for the Node's Pod ranges", "node", name, "why", text)
			said = text
			say(err)
		}
		select {
		case <-ctx.Done():
			return Node{}, err
		case <-time.After(pause):
		}
	}
}

func getNode(ctx context.Context, client kubernetes.Interface, name string) (Node, error) {
	limited, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	obj, err := client.CoreV1().Nodes().Get(limited, name, metav1.GetOptions{})
	if err != nil {
		return Node{}, fmt.Errorf("kubernetes: Node %q: %w: is it registered under that name (kubernetes.nodeName), and may this agent read Nodes?", name, err)
	}
	node, err := read(obj)
	if err == nil && len(node.PodCIDRs) == 0 {
		err = fmt.Errorf("kubernetes: Node %s: %w: start the controller-manager with --allocate-node-cidrs=true and --cluster-cidr, or set spec.podCIDRs of the Node", name, ErrNoPodCIDR)
	}
	return node, err
}

// read takes what we need out of an API object.
func read(obj *corev1.Node) (Node, error) {
	node := Node{Name: obj.Name}
	cidrs := obj.Spec.PodCIDRs
	if len(cidrs) == 0 && obj.Spec.PodCIDR != "" {
		cidrs = []string{obj.Spec.PodCIDR}
	}
	for _, s := range cidrs {
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return node, fmt.Errorf("kubernetes: Node %s: podCIDR %q is none: %w", obj.Name, s, err)
		}
		if !slices.ContainsFunc(node.PodCIDRs, func(q netip.Prefix) bool { return q.Addr().Is4() == p.Addr().Is4() }) {
			node.PodCIDRs = append(node.PodCIDRs, p.Masked())
		}
	}
	for _, a := range obj.Status.Addresses {
		ip, err := netip.ParseAddr(a.Address)
		if a.Type != corev1.NodeInternalIP || err != nil || node.Address(ip).IsValid() {
			continue
		}
		node.Addresses = append(node.Addresses, ip)
	}
	return node, nil
}

// Nodes follows all Nodes of the cluster.
type Nodes struct {
	informer cache.SharedIndexInformer
	lister   corelisters.NodeLister
	self     string
}

// NewNodes returns a Nodes that follows nothing before Run. self is the name of our own.
func NewNodes(client kubernetes.Interface, self string) *Nodes {
	nodes := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slimNode)).Core().V1().Nodes()
	return &Nodes{informer: nodes.Informer(), lister: nodes.Lister(), self: self}
}

// slimNode drops what makes Node objects large: images, conditions, managed fields.
func slimNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion},
		Spec:       corev1.NodeSpec{PodCIDR: node.Spec.PodCIDR, PodCIDRs: node.Spec.PodCIDRs},
		Status:     corev1.NodeStatus{Addresses: node.Status.Addresses},
	}, nil
}

// Run follows the Nodes until ctx ends.
func (n *Nodes) Run(ctx context.Context) error {
	n.informer.RunWithContext(ctx)
	return nil
}

// Synced reports whether the first list has been read: before, Peers is not the whole truth.
func (n *Nodes) Synced() bool { return n.informer.HasSynced() }

// OnChange calls fn when a Node came or went, or its ranges or addresses changed:
// every kubelet writes its Node's status every few minutes, and in a large cluster
// that is all the time. fn must not block.
func (n *Nodes) OnChange(fn func()) error {
	_, err := n.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { fn() }, DeleteFunc: func(any) { fn() },
		UpdateFunc: func(before, now any) {
			old, ok1 := before.(*corev1.Node)
			node, ok2 := now.(*corev1.Node)
			if ok1 && ok2 && old.UID == node.UID && reflect.DeepEqual(old.Spec, node.Spec) && reflect.DeepEqual(old.Status, node.Status) {
				return
			}
			fn()
		}})
	if err != nil {
		return fmt.Errorf("kubernetes: follow Nodes: %w", err)
	}
	return nil
}

// Self returns our own Node as last seen.
func (n *Nodes) Self() (Node, bool) {
	obj, err := n.lister.Get(n.self)
	if err != nil {
		return Node{}, false
	}
	node, err := read(obj)
	return node, err == nil
}

// Peers returns the other Nodes that have Pod ranges and an address, by name. A
// Node whose ranges cannot be read is left out and returned in bad.
func (n *Nodes) Peers() (peers []Node, bad []error) {
	objs, err := n.lister.List(labels.Everything())
	if err != nil {
		return nil, []error{err}
	}
	for _, obj := range objs {
		if obj.Name == n.self {
			continue
		}
		node, err := read(obj)
		if err != nil {
			bad = append(bad, err)
		} else if len(node.PodCIDRs) > 0 && len(node.Addresses) > 0 {
			peers = append(peers, node)
		}
	}
	slices.SortFunc(peers, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return peers, bad
}
