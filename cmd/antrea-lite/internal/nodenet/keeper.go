package nodenet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
)

// Config says what the Keeper keeps.
type Config struct {
	Encap      bool   // a tunnel takes Pods' packets to other nodes
	Gateway    string // the gateway's interface
	Own        []netip.Prefix
	MTU        int           // of Pods
	Masquerade bool          // translate what leaves the cluster
	Period     time.Duration // how often it looks even if nothing woke it
}

const (
	retryMin = 200 * time.Millisecond
	retryMax = 5 * time.Second
)

// Keeper keeps routes and translation. Its methods may be called concurrently.
type Keeper struct {
	conf  Config
	peers func() (nodes []kube.Node, known bool)
	wake  chan struct{}
	state state // of Run alone

	mu     sync.Mutex
	err    error // of the last attempt
	looked bool
}

// New returns a Keeper. peers returns the other nodes, known when that is the
// whole truth: until then no route is removed, since nodes that are there all
// along may only not be listed yet.
func New(conf Config, peers func() (nodes []kube.Node, known bool)) *Keeper {
	return &Keeper{conf: conf, peers: peers, wake: make(chan struct{}, 1)}
}

// Wake asks for another look; it never blocks.
func (k *Keeper) Wake() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Check returns why routes and translation are not as they have to be.
func (k *Keeper) Check() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.looked {
		return errors.New("the nodes of the cluster are not known yet")
	}
	return k.err
}

// Looked reports whether the other nodes were known once and what could be done
// for them is done.
func (k *Keeper) Looked() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.looked
}

// Run looks until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	pause := retryMin
	for {
		next := k.conf.Period
		if peers, known := k.peers(); known {
			err := k.look(log, peers)
			if k.remember(err) && err != nil {
				log.Info("Not every node can be reached", "why", err)
			}
			if err != nil {
				next, pause = pause, min(2*pause, retryMax)
			} else {
				pause = retryMin
			}
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-k.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// remember keeps the outcome and reports whether it is news.
func (k *Keeper) remember(err error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	news := !k.looked || fmt.Sprint(err) != fmt.Sprint(k.err)
	k.err, k.looked = err, true
	return news
}
