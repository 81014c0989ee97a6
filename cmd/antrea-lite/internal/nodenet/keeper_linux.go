package nodenet

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/masquerade"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/routes"
)

// Config says what the Keeper keeps.
type Config struct {
	Mode       string // NoEncap or Encap
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

// Run looks until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	log := klog.FromContext(ctx)
	var last state
	pause := retryMin
	for {
		next := k.conf.Period
		if peers, known := k.peers(); known {
			now, err := k.look(log, peers, last)
			if k.remember(err) && err != nil {
				log.Info("Not every node can be reached", "why", err)
			}
			if last = now; err != nil {
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

// state is what was written last.
type state struct{ masquerade masquerade.Config }

func (k *Keeper) look(log klog.Logger, peers []kube.Node, last state) (now state, err error) {
	now = last
	want := planRoutes(k.conf, peers)
	changed, err := routes.Apply(want)
	if len(changed) > 0 {
		log.Info("Changed routes to other nodes", "changes", changed)
	}
	if k.conf.Mode == Encap {
		err = errors.Join(err, routes.RemoveNeighbours(k.conf.Gateway, want))
	}
	return now, errors.Join(err, k.translate(&now, peers))
}

// translate writes the rules when they have to change, or are gone.
func (k *Keeper) translate(now *state, peers []kube.Node) error {
	if !k.conf.Masquerade {
		return nil
	}
	want := masquerade.Config{Own: k.conf.Own, Inside: inside(k.conf.Own, peers), Gateway: k.conf.Gateway}
	there, err := masquerade.Present()
	if err != nil || there && reflect.DeepEqual(want, now.masquerade) {
		return err
	}
	if err := masquerade.Apply(want); err != nil {
		return err
	}
	now.masquerade = want
	return nil
}
