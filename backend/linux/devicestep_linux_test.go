package linux

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// steppedDevices is a watch of devices that a test writes to; begun anew it names all.
type steppedDevices struct {
	news  chan []string
	all   []string
	ended bool
}

func (w *steppedDevices) Next(ctx context.Context) ([]string, error) {
	if w.ended && ctx.Err() == nil {
		w.ended = false
		return w.all, nil
	}
	select {
	case names := <-w.news:
		return names, nil
	case <-ctx.Done():
		w.ended = true
		return nil, context.Cause(ctx)
	}
}

// stepWorld is a deviceStep that sees real devices and counts what it opens anew.
type stepWorld struct {
	*deviceStep
	store    *ifstore.Store
	devices  *steppedDevices
	reopened []string
	fail     error
}

func newStepWorld(t *testing.T) *stepWorld {
	w := &stepWorld{store: ifstore.New(), devices: &steppedDevices{news: make(chan []string, 8)}}
	w.deviceStep = newDeviceStep(AsyncReadinessConfig{Linker: newLinker(t, Config{LateDevices: true}), Interface: w.store.ByName,
		Reopen: func(_ context.Context, key podnet.PortKey) error {
			w.reopened = append(w.reopened, key.Name)
			return w.fail
		}}, w.devices)
	return w
}

func (w *stepWorld) pod(name, gen string) ifstore.Key {
	key := ifstore.Key{ContainerID: "vm-" + gen, IfName: "eth0"}
	w.store.Put(ifstore.Interface{Key: key, Name: name, Gen: gen, MTU: 1400, Extra: map[string]string{extraDevice: hostDevice}})
	return key
}

// tell reports names and waits until they are done with.
func (w *stepWorld) tell(t *testing.T, names ...string) {
	t.Helper()
	w.devices.news <- names
	if got, err := w.Next(t.Context()); err != nil || !slices.Equal(got, names) {
		t.Fatalf("told %v, %v; want %v", got, err, names)
	}
}

// remake makes another device of that name.
func remake(t *testing.T, name string) {
	t.Helper()
	removeDevice(t, name)
	device(t, name)
}

// What failed for one device is tried again in time, though others come all the while.
func TestDeviceIsTriedAgainWhileOthersCome(t *testing.T) {
	device(t, "again0")
	synctest.Test(t, func(t *testing.T) {
		w := newStepWorld(t)
		w.pod("again0", "g1")
		w.tell(t, "again0")
		remake(t, "again0")
		w.fail = errors.New("OVSDB is away")
		w.tell(t, "again0")
		if len(w.reopened) != 1 {
			t.Fatalf("opened anew: %v, want once", w.reopened)
		}
		w.fail = nil
		w.devices.all = []string{"again0"}
		for range 6 {
			time.Sleep(reopenRetry / 5)
			w.devices.news <- []string{"other"}
			if _, err := w.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.reopened) != 2 {
			t.Errorf("opened anew: %v, want a second time after %v", w.reopened, reopenRetry)
		}
	})
}

// Another life of a port has opened the device that is there, and nothing is
// kept of interfaces that were removed.
func TestDeviceOfAnotherLifeIsNotOpenedAnew(t *testing.T) {
	device(t, "life0")
	w := newStepWorld(t)
	first := w.pod("life0", "g1")
	w.tell(t, "life0")
	w.store.Delete(first)
	second := w.pod("life0", "g2")
	remake(t, "life0")
	w.tell(t, "life0")
	if len(w.reopened) != 0 {
		t.Errorf("opened anew: %v, want nothing", w.reopened)
	}
	remake(t, "life0")
	w.tell(t, "life0")
	if len(w.reopened) != 1 {
		t.Errorf("opened anew: %v, want once", w.reopened)
	}
	w.store.Delete(second)
	w.tell(t, "other")
	if len(w.open) != 0 {
		t.Errorf("kept of removed interfaces: %v", w.open)
	}
}
