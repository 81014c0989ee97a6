package windows

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

const defaultAuditPeriod = time.Minute

// AuditorConfig configures an Auditor.
type AuditorConfig struct {
	Linker     *Linker                    // required
	Interfaces func() []ifstore.Interface // what should be there (podnet.Network.Interfaces). Required.
	Events     podnet.Events              // told about Pods that lost their endpoint; nil: nobody
	Period     time.Duration              // between two comparisons; two in a row count. 0: 1 min
}

// Auditor compares the endpoints of HNS with the records, once in a period. HNS
// loses endpoints without telling anybody, and other programs delete them,
// while the Pods run on without network. It reports and repairs nothing: the
// vNIC inside the container went with the endpoint.
type Auditor struct {
	cfg AuditorConfig

	mu     sync.Mutex
	faults map[ifstore.Key]fault
}

// fault is what is wrong with an interface, as seen last.
type fault struct {
	gen  string // of the interface's port: another life starts anew
	text string
	told bool
}

// NewAuditor returns an Auditor; Run does its work.
func NewAuditor(cfg AuditorConfig) (*Auditor, error) {
	if cfg.Linker == nil || cfg.Interfaces == nil {
		return nil, errors.New("windows: AuditorConfig needs Linker and Interfaces")
	}
	setDefault(&cfg.Period, defaultAuditPeriod)
	return &Auditor{cfg: cfg, faults: make(map[ifstore.Key]fault)}, nil
}

// Run compares until ctx ends; it returns nil then.
func (a *Auditor) Run(ctx context.Context) error {
	tick := time.NewTicker(a.cfg.Period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			a.compare(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// Faults returns how many interfaces were reported and are not well yet.
func (a *Auditor) Faults() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.faults {
		if f.told {
			n++
		}
	}
	return n
}

// compare looks once. Interfaces that wait are the readiness backend's to
// report; those that go away are about to be nobody's.
func (a *Auditor) compare(ctx context.Context) {
	all := a.cfg.Interfaces()
	var ready []ifstore.Interface
	for _, i := range all {
		if i.State == ifstore.StateReady {
			ready = append(ready, i)
		}
	}
	a.forget(all)
	if len(ready) == 0 {
		return
	}
	results, err := a.cfg.Linker.Audit(ctx, ready)
	if err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).Info("HNS cannot be compared with the records now", "reason", err.Error())
		}
		return
	}
	for n, i := range ready {
		if event, ok := a.observe(i, results[n]); ok {
			a.report(ctx, i, event)
		}
	}
}

// forget drops what is known about interfaces that are gone, or in another life.
func (a *Auditor) forget(all []ifstore.Interface) {
	gens := make(map[ifstore.Key]string, len(all))
	for _, i := range all {
		gens[i.Key] = i.Gen
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, f := range a.faults {
		if gen, ok := gens[key]; !ok || gen != f.gen {
			delete(a.faults, key)
		}
	}
}

// observe remembers what was seen and returns what the Pod's owner should hear.
func (a *Auditor) observe(i ifstore.Interface, err error) (podnet.Event, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f, known := a.faults[i.Key]
	event := podnet.Event{Key: i.Key, Pod: i.Pod, Time: time.Now()}
	if err == nil {
		delete(a.faults, i.Key)
		event.Type, event.Message = podnet.NetworkReady, "HNS has the endpoint as recorded again"
		return event, f.told
	}
	text := err.Error()
	// Once may be a DEL or a change between the two readings.
	tell := known && !(f.told && f.text == text)
	a.faults[i.Key] = fault{gen: i.Gen, text: text, told: f.told || tell}
	event.Type, event.Message = podnet.NetworkNotReady, text
	return event, tell
}

func (a *Auditor) report(ctx context.Context, i ifstore.Interface, event podnet.Event) {
	klog.FromContext(ctx).Info("The HNS endpoint of a Pod was compared with its record", "pod", i.Pod.String(), "interface", i.Key.String(), "outcome", event.Type, "message", event.Message)
	if a.cfg.Events != nil {
		a.cfg.Events.Event(ctx, event)
	}
}
