package linux

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// AsyncReadinessConfig configures NewAsyncReadiness.
type AsyncReadinessConfig struct {
	// Linker sets up devices of others when they appear. Its LateDevices should be set. Required.
	Linker *Linker
	// Interface returns the record of a port's name: ByName of the Network's store. Required.
	Interface func(name string) (ifstore.Interface, bool)
	// Ports returns what the OpenFlow session last heard about a port. Required.
	Ports func(name string) (async.PortState, bool)
	// Watches are the port watches of the OpenFlow and the OVSDB client.
	Watches []async.Watch
	// OFPort tells what OVSDB says of a port that OpenFlow does not list or that is down: OFPort of the OVSDB client.
	OFPort func(ctx context.Context, key podnet.PortKey) (uint32, error)
	// Nudge makes Open vSwitch try again to open a port's device: Nudge of the OVSDB client.
	Nudge func(ctx context.Context, key podnet.PortKey) error
	// Reopen makes Open vSwitch open a port's device anew: Reopen of the OVSDB
	// client. The userspace datapath needs it when a device of others went and came
	// back; nil on the kernel datapath, which notices by itself.
	Reopen func(ctx context.Context, key podnet.PortKey) error
	// NotReadyAfter and Queue are those of async.Config.
	NotReadyAfter time.Duration
	Queue         async.QueueConfig
}

// NewAsyncReadiness returns a readiness backend that never waits in Add: for
// nodes where numbers come slowly, and for devices that others make later
// (Request.HostDevice). A port waits until its device appears, is set up if it
// is one of others, has a number, and is live, which on Linux means that both
// ends of the link are up. Losing that later withdraws nothing.
func NewAsyncReadiness(cfg AsyncReadinessConfig) (*async.Readiness, error) {
	if cfg.Linker == nil || cfg.Interface == nil || cfg.Ports == nil {
		return nil, errors.New("linux: AsyncReadinessConfig needs Linker, Interface and Ports")
	}
	d := newDeviceStep(cfg, &DeviceWatch{})
	return async.New(async.Config{
		Accept: async.AcceptLive, Ports: cfg.Ports,
		Watches: append([]async.Watch{d}, cfg.Watches...),
		Prepare: d.prepare, OFPort: cfg.OFPort, Nudge: cfg.Nudge,
		NotReadyAfter: cfg.NotReadyAfter, Queue: cfg.Queue,
	})
}

// reopenRetry is the pause before a device that could not be set up or opened
// anew is tried again.
const reopenRetry = 5 * time.Second

// deviceStep is what a port needs before its number: that its device is there and set up.
type deviceStep struct {
	cfg        AsyncReadinessConfig
	appearance *async.Appearance
	watch      async.Watch // of devices; begun anew after its context has ended, it names all

	again   time.Time           // when Next tries again what it could not do; zero: nothing
	failing map[string]struct{} // of which Next has told

	mu   sync.Mutex
	open map[string]opened // devices of others, as last set up
}

// opened is the device that Open vSwitch has open for one life of a port.
type opened struct {
	gen   string
	index int
}

func newDeviceStep(cfg AsyncReadinessConfig, watch async.Watch) *deviceStep {
	return &deviceStep{cfg: cfg, appearance: async.NewAppearance(ListDevices, 0), watch: watch,
		failing: make(map[string]struct{}), open: make(map[string]opened)}
}

// prepare implements async.Config.Prepare.
func (d *deviceStep) prepare(ctx context.Context, keys []podnet.PortKey) []error {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i] = key.Name
	}
	errs := d.appearance.Check(ctx, names)
	for i, name := range names {
		if errs[i] == nil {
			errs[i] = d.setUp(ctx, name)
		}
	}
	return errs
}

// setUp sets a device of others up; every other one is as Link made it.
func (d *deviceStep) setUp(ctx context.Context, name string) error {
	iface, ok := d.device(name)
	if !ok {
		return nil
	}
	index, err := d.cfg.Linker.setUpDevice(name, iface.MTU)
	if err != nil {
		return err
	}
	now := opened{iface.Gen, index}
	before := d.swap(name, now) // before Reopen: another look must not do it too
	if d.cfg.Reopen == nil || before.index == 0 || before.index == index || before.gen != "" && before.gen != iface.Gen {
		return nil // another life of the port has opened what is there now
	}
	if err := d.cfg.Reopen(ctx, podnet.PortKey{Name: name, Gen: iface.Gen}); err != nil {
		d.swap(name, before)
		return fmt.Errorf("host device %s was made again, and Open vSwitch has the old one open: %w", name, err)
	}
	return nil
}

// nextOrFailed returns what the watch reports, and at d.again, whatever it has
// to report then, the devices that failed.
func (d *deviceStep) nextOrFailed(ctx context.Context) ([]string, error) {
	if d.again.IsZero() {
		return d.watch.Next(ctx)
	}
	if time.Now().Before(d.again) {
		wait, cancel := context.WithDeadline(ctx, d.again)
		defer cancel()
		if names, err := d.watch.Next(wait); err == nil || ctx.Err() != nil || wait.Err() == nil {
			return names, err
		}
	}
	d.again = time.Time{}
	return slices.Sorted(maps.Keys(d.failing)), nil
}

// device returns the record of a port whose device is one of others.
func (d *deviceStep) device(name string) (ifstore.Interface, bool) {
	iface, ok := d.cfg.Interface(name)
	return iface, ok && isDevice(iface)
}

func (d *deviceStep) swap(name string, now opened) (before opened) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, d.open[name] = d.open[name], now
	return before
}

// forgetGone drops what is known of devices whose interface was removed.
func (d *deviceStep) forgetGone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.open {
		if _, ok := d.device(name); !ok {
			delete(d.open, name)
		}
	}
}

// Next implements async.Watch: devices that came or went. One that came back, or
// went down, is set up again at once (ovs-vswitchd itself takes a device down when it
// writes flags back that it had read before we brought the device up), also when its port never lost its number (the userspace
// datapath keeps it) and so has nothing to wait for. What fails is tried again
// reopenRetry later, whatever other devices do meanwhile.
func (d *deviceStep) Next(ctx context.Context) ([]string, error) {
	names, err := d.nextOrFailed(ctx)
	if err != nil {
		return nil, err
	}
	d.appearance.Changed()
	step, cancelStep := context.WithTimeout(ctx, reopenRetry)
	defer cancelStep()
	for _, name := range names {
		err := d.setUp(step, name)
		if err == nil || errors.Is(err, podnet.ErrNoDevice) {
			delete(d.failing, name)
			continue
		}
		if d.again.IsZero() && !errors.Is(err, podnet.ErrBadRequest) { // that stays as it is
			d.again = time.Now().Add(reopenRetry)
		}
		if _, told := d.failing[name]; !told {
			d.failing[name] = struct{}{}
			klog.FromContext(ctx).Error(err, "A host device appeared and cannot be used yet", "device", name)
		}
	}
	d.forgetGone()
	return names, nil
}
