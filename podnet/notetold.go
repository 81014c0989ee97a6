package podnet

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
)

// noteTold keeps podnet-told in the ports' rows equal to what Pods were told:
// after a restart, whoever heard NetworkNotReady of an earlier process hears
// NetworkReady of this one. It is apart from the telling, which must not wait
// for OVSDB; what cannot be written now is written at a later look. A process
// that ends between an event and the next look leaves it unsaid, or says
// NetworkReady twice.
func (n *Network) noteTold(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, n.cfg.RetryInterval)
	defer cancel()
	for _, iface := range n.store.List() {
		if ctx.Err() != nil {
			return
		}
		if iface.Gen == "" || iface.State != ifstore.StateWaiting && iface.State != ifstore.StateReady {
			continue
		}
		t := n.trackOf(iface.Key)
		gen, value := "", ""
		switch {
		case t.openWait && !t.told.IsZero() && t.noted != iface.Gen:
			gen, value = iface.Gen, "true"
		case !t.openWait && t.noted != "":
		default:
			continue
		}
		err := n.cfg.Bridge.SetExternalIDs(ctx, portKey(iface), map[string]string{idTold: value})
		if err == nil || errors.Is(err, ErrNoPort) && value == "" {
			n.tracked(iface.Key, func(t *track) { t.noted = gen })
		} else {
			klog.FromContext(ctx).V(2).Info("Could not note in OVSDB what a Pod was told", "port", iface.Name, "reason", err.Error())
		}
	}
}
