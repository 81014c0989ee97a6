package nodenet

import (
	"errors"
	"reflect"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/kube"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/masquerade"
	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/routes"
)

// state is what was written last.
type state struct{ masquerade masquerade.Config }

// look makes the kernel as it has to be.
func (k *Keeper) look(log klog.Logger, peers []kube.Node) error {
	want, unreached := planRoutes(k.conf, peers)
	changed, err := routes.Apply(want)
	if len(changed) > 0 {
		log.Info("Changed routes to other nodes", "changes", changed)
	}
	// Without a tunnel those of an agent before this one, which had one.
	err = errors.Join(err, routes.RemoveNeighbours(k.conf.Gateway, want))
	return errors.Join(errors.Join(unreached...), err, k.translate(peers))
}

// translate writes the rules when they have to change, or are gone.
func (k *Keeper) translate(peers []kube.Node) error {
	if !k.conf.Masquerade {
		// Of an agent before this one, which was told otherwise. Not asked to
		// translate, it is no fault that the kernel cannot.
		if there, err := masquerade.Present(); err == nil && there {
			return masquerade.Remove()
		}
		return nil
	}
	want := masquerade.Config{Own: k.conf.Own, Inside: inside(k.conf.Own, peers), Gateway: k.conf.Gateway}
	there, err := masquerade.Present()
	if err != nil || there && reflect.DeepEqual(want, k.state.masquerade) {
		return err
	}
	if err := masquerade.Apply(want); err != nil {
		return err
	}
	k.state.masquerade = want
	return nil
}
