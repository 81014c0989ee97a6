package ifstore

import "net/netip"

// index maps a value to the keys of all entries that carry it. It holds sets
// because values are not unique at every moment: while Open vSwitch renumbers
// ports, two records may carry one number until both have been looked at.
type index[V comparable] map[V]map[Key]struct{}

func (x index[V]) add(v V, k Key) {
	keys := x[v]
	if keys == nil {
		keys = make(map[Key]struct{}, 1)
		x[v] = keys
	}
	keys[k] = struct{}{}
}

func (x index[V]) remove(v V, k Key) {
	delete(x[v], k)
	if len(x[v]) == 0 {
		delete(x, v)
	}
}

// podName is the part of a Pod that look-ups use: the UID may be unknown.
type podName struct{ namespace, name string }

// indexes are all secondary indexes. An empty value is not indexed.
type indexes struct {
	names      index[string]
	containers index[string]
	pods       index[podName]
	ips        index[netip.Addr]
	ofports    index[uint32]
}

func newIndexes() indexes {
	return indexes{
		names:      make(index[string]),
		containers: make(index[string]),
		pods:       make(index[podName]),
		ips:        make(index[netip.Addr]),
		ofports:    make(index[uint32]),
	}
}

func (x *indexes) add(i *Interface) {
	x.containers.add(i.ContainerID, i.Key)
	if i.Name != "" {
		x.names.add(i.Name, i.Key)
	}
	if i.Pod.Name != "" {
		x.pods.add(podName{i.Pod.Namespace, i.Pod.Name}, i.Key)
	}
	for _, a := range i.Addresses {
		x.ips.add(a.Prefix.Addr(), i.Key)
	}
	if i.OFPort != 0 {
		x.ofports.add(i.OFPort, i.Key)
	}
}

func (x *indexes) remove(i *Interface) {
	x.containers.remove(i.ContainerID, i.Key)
	x.names.remove(i.Name, i.Key)
	x.pods.remove(podName{i.Pod.Namespace, i.Pod.Name}, i.Key)
	for _, a := range i.Addresses {
		x.ips.remove(a.Prefix.Addr(), i.Key)
	}
	x.ofports.remove(i.OFPort, i.Key)
}
