package agent

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
)

// An agent that starts while the API server is away knows the nodes that the one before it knew.
func TestPeerListOutlivesTheProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "peers.json")
	own := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}
	node := func(name, cidr string) kube.Node {
		return kube.Node{Name: name, PodCIDRs: []netip.Prefix{netip.MustParsePrefix(cidr)}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.9")}}
	}
	first := newPeerList(t.Context(), path, own)
	if got := first.get(); len(got) != 0 {
		t.Errorf("nothing is known, got %v", got)
	}
	want := []kube.Node{node("b", "10.2.0.0/24")}
	if got := first.set([]kube.Node{node("b", "10.2.0.0/24"), node("wrong", "10.1.0.0/24")}, nil); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := newPeerList(t.Context(), path, own).get(); !reflect.DeepEqual(got, want) {
		t.Errorf("after a restart %v, want %v", got, want)
	}
	if got := newPeerList(t.Context(), path, want[0].PodCIDRs).get(); len(got) != 0 {
		t.Errorf("after a move to the range of a node: %v", got)
	}
	if got := first.set(nil, nil); len(got) != 0 || len(newPeerList(t.Context(), path, own).get()) != 0 {
		t.Error("a node that went is remembered")
	}
}
