package agent

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"sync"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/config"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/nodenet"
)

// peerList is the other nodes as last known. Until the API server has listed them
// it is what an earlier process knew: the tunnel's flows are written anew when the
// agent starts, and traffic to other nodes must not end with that, least of all
// while the API server is away. Its methods may be called concurrently.
type peerList struct {
	path string
	own  []netip.Prefix

	mu   sync.Mutex
	last []kube.Node
	odd  []error // why nodes, ranges or addresses are left out
}

// peersFile dies with the boot, as what it tells may be old by then.
func peersFile(conf *config.Config) string { return filepath.Join(conf.StateDir, "peers.json") }

func newPeerList(ctx context.Context, path string, own []netip.Prefix) *peerList {
	nodes, err := kube.LoadPeers(path)
	if err != nil {
		klog.FromContext(ctx).Info("Starting without", "err", err)
	}
	// The own ranges may be others than those of the process that wrote it.
	nodes, _ = nodenet.Sound(own, nodes)
	return &peerList{path: path, own: own, last: nodes}
}

// get returns the nodes as last known.
func (p *peerList) get() []kube.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// leftOut returns why nodes, ranges or addresses of the last list are left out.
func (p *peerList) leftOut() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.odd
}

// set takes what the API server has listed, returns what of it makes sense and
// keeps that for the next process.
func (p *peerList) set(nodes []kube.Node, bad []error) []kube.Node {
	sound, odd := nodenet.Sound(p.own, nodes)
	p.mu.Lock()
	defer p.mu.Unlock()
	odd = append(bad, odd...)
	if why := fmt.Sprint(odd); why != fmt.Sprint(p.odd) {
		klog.Background().Info("Ranges or addresses of nodes that are left out have changed", "now", why)
	}
	p.odd = odd
	if reflect.DeepEqual(sound, p.last) {
		return p.last
	}
	p.last = sound
	if err := kube.SavePeers(p.path, sound); err != nil {
		klog.Background().Error(err, "After a restart there will be no traffic to other nodes until the API server has been asked")
	}
	return p.last
}
