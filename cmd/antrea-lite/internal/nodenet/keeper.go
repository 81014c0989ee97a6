package nodenet

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/level"
)

// Config says what the Keeper keeps.
type Config struct {
	Encap      bool   // a tunnel takes Pods' packets to other nodes
	Outer6     bool   // and nodes speak IPv6 to each other
	Gateway    string // the gateway's interface
	Own        []netip.Prefix
	MTU        int           // of Pods
	Masquerade bool          // translate what leaves the cluster
	Period     time.Duration // how often it looks even if nothing woke it
}

// Keeper keeps routes and translation. Its methods may be called concurrently.
type Keeper struct {
	conf  Config
	peers func() (nodes []kube.Node, known bool)
	loop  *level.Loop
	state state // of Run alone
}

// New returns a Keeper. peers returns the other nodes, known when that is the
// whole truth: until then no route is removed, since nodes that are there all
// along may only not be listed yet.
func New(conf Config, peers func() (nodes []kube.Node, known bool)) *Keeper {
	return &Keeper{conf: conf, peers: peers, loop: level.New(conf.Period)}
}

// Wake asks for another look; it never blocks.
func (k *Keeper) Wake() { k.loop.Wake() }

// Faults returns why routes and translation are not as they have to be, one for
// each node and cause.
func (k *Keeper) Faults() []error {
	err, looked := k.loop.Last()
	if !looked {
		return []error{errors.New("the nodes of the cluster are not known yet: the API server has not listed them")}
	}
	return flatten(err)
}

// flatten takes joined errors apart.
func flatten(err error) (list []error) {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		list = append(list, flatten(e)...)
	}
	return list
}

// Looked reports whether the other nodes were known once and what could be done
// for them is done.
func (k *Keeper) Looked() bool {
	_, looked := k.loop.Last()
	return looked
}

// Run looks until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	return k.loop.Run(ctx, func(context.Context) error {
		peers, known := k.peers()
		if !known {
			return level.ErrNotYet
		}
		return k.look(log, peers)
	}, func(err error) {
		if err != nil {
			log.Info("Not every node can be reached", "why", err)
		}
	})
}
