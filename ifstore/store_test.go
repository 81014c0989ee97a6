package ifstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/antrea-lite/podnet/ifstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var compareNetip = []cmp.Option{
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

func key(n int) ifstore.Key {
	return ifstore.Key{ContainerID: fmt.Sprint("c", n/2), IfName: fmt.Sprint("eth", n%2)}
}

func record(n int) ifstore.Interface {
	return ifstore.Interface{
		Key:       key(n),
		Pod:       ifstore.Pod{Namespace: "default", Name: fmt.Sprint("pod", n/2)},
		Name:      fmt.Sprint("port", n),
		Gen:       fmt.Sprint("row", n),
		OFPort:    uint32(n),
		Addresses: []ifstore.Address{{Prefix: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), 24)}},
		State:     ifstore.StateReady,
		Extra:     map[string]string{"k": "v"},
		Created:   time.Unix(int64(n), 0),
	}
}

func TestValuesInCopiesOut(t *testing.T) {
	s := ifstore.New()
	i := record(1)
	if err := s.Insert(i); err != nil {
		t.Fatal(err)
	}
	spoil := func(i ifstore.Interface) {
		i.Extra["k"] = "spoiled"
		i.Addresses[0] = ifstore.Address{}
	}
	spoil(i)
	byName, _ := s.ByName("port1")
	spoil(byName)
	spoil(s.List()[0])
	spoil(s.ByPod("default", "pod0")[0])
	updated, err := s.Update(i.Key, "row1", func(i *ifstore.Interface) error { i.MTU = 9; return nil })
	if err != nil {
		t.Fatal(err)
	}
	spoil(updated)
	// An update that fails changes nothing, however far it came.
	if _, err := s.Update(i.Key, "", func(i *ifstore.Interface) error { spoil(*i); return errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Update: %v", err)
	}
	want := record(1)
	want.MTU = 9
	got, ok := s.Get(i.Key)
	if diff := cmp.Diff(want, got, compareNetip...); !ok || diff != "" {
		t.Errorf("record was changed from outside (-want +got):\n%s", diff)
	}
}

func TestUpdateNeverRevives(t *testing.T) {
	s := ifstore.New()
	s.Put(record(1))
	s.Delete(key(1))
	touch := func(i *ifstore.Interface) error { i.MTU = 1; return nil }
	if _, err := s.Update(key(1), "", touch); !errors.Is(err, ifstore.ErrNotFound) || s.Len() != 0 {
		t.Errorf("Update of a deleted entry: %v, %d entries", err, s.Len())
	}
	second := record(1)
	second.Gen = "second life"
	s.Put(second)
	if _, err := s.Update(key(1), "row1", touch); !errors.Is(err, ifstore.ErrNotFound) || !strings.Contains(err.Error(), "second life") {
		t.Errorf("Update of another life: %v", err)
	}
	if got, _ := s.Get(key(1)); got.MTU != 0 {
		t.Error("the second life was changed in the name of the first")
	}
	if _, err := s.Update(key(1), "", func(i *ifstore.Interface) error { i.Key = key(2); return nil }); err == nil {
		t.Error("an update may not change the key")
	}
}

func TestInsertNamesTheHolder(t *testing.T) {
	s := ifstore.New()
	holder := record(1)
	holder.State = ifstore.StateWithdrawing // what it holds is not free yet
	s.Put(holder)
	for field, change := range map[string]func(*ifstore.Interface){
		"interface": func(i *ifstore.Interface) { i.Key = key(1) },
		"name":      func(i *ifstore.Interface) { i.Name = "port1" },
		"address":   func(i *ifstore.Interface) { i.Addresses = record(1).Addresses },
	} {
		i := record(4)
		change(&i)
		err := s.Insert(i)
		conflict := (*ifstore.ConflictError)(nil)
		if !errors.As(err, &conflict) || !errors.Is(err, ifstore.ErrConflict) || conflict.Field != field || conflict.Holder.Key != key(1) {
			t.Errorf("%s: %v", field, err)
		} else if !strings.Contains(err.Error(), "c0/eth1 of Pod default/pod0 (withdrawing)") {
			t.Errorf("%s: the text does not name the holder: %v", field, err)
		}
	}
	if s.Len() != 1 {
		t.Errorf("%d entries after refused inserts", s.Len())
	}
}

// OF-21: what is being withdrawn is no answer to "whose is this?".
func TestLookupsSkipWithdrawing(t *testing.T) {
	s := ifstore.New()
	old, young := record(1), record(2)
	old.State, young.OFPort = ifstore.StateWithdrawing, old.OFPort
	young.Addresses = old.Addresses
	s.Put(old)
	ip := old.Addresses[0].Prefix.Addr()
	if _, ok := s.ByOFPort(1); ok {
		t.Error("ByOFPort finds an entry that is being withdrawn")
	}
	if _, ok := s.ByIP(ip); ok {
		t.Error("ByIP finds an entry that is being withdrawn")
	}
	if _, ok := s.ByName("port1"); !ok {
		t.Error("ByName has to find it: its removal goes on")
	}
	s.Put(young)
	if got, ok := s.ByOFPort(1); !ok || got.Key != young.Key {
		t.Errorf("ByOFPort: %v %v", got.Key, ok)
	}
	if got, ok := s.ByIP(ip); !ok || got.Key != young.Key {
		t.Errorf("ByIP: %v %v", got.Key, ok)
	}
}

// model is the store written in the most obvious way.
type model map[ifstore.Key]ifstore.Interface

func (m model) find(keep func(ifstore.Interface) bool) []ifstore.Interface {
	found := slices.Collect(maps.Values(m))
	found = slices.DeleteFunc(found, func(i ifstore.Interface) bool { return !keep(i) })
	slices.SortFunc(found, func(a, b ifstore.Interface) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		if c := strings.Compare(a.ContainerID, b.ContainerID); c != 0 {
			return c
		}
		return strings.Compare(a.IfName, b.IfName)
	})
	return found
}

func (m model) first(keep func(ifstore.Interface) bool) (ifstore.Interface, bool) {
	if found := m.find(keep); len(found) > 0 {
		return found[0], true
	}
	return ifstore.Interface{}, false
}

func TestIndexesAgreeWithANaiveModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s, m := ifstore.New(), make(model)
	const values = 12
	some := func() ifstore.Interface {
		i := record(random.IntN(values))
		i.Name = fmt.Sprint("port", random.IntN(values))
		i.OFPort = uint32(random.IntN(values))
		i.Pod.Name = []string{"", "pod0", "pod1"}[random.IntN(3)]
		i.Created = time.Unix(random.Int64N(3), 0)
		i.State = []ifstore.State{ifstore.StateReady, ifstore.StateWithdrawing}[random.IntN(2)]
		i.Addresses = nil
		for range random.IntN(3) {
			i.Addresses = append(i.Addresses, record(random.IntN(values)).Addresses...)
		}
		return i
	}
	same := func(what string, want, got any) {
		t.Helper()
		if reflect.DeepEqual(want, got) {
			return // cmp takes a hundred times as long
		}
		if diff := cmp.Diff(want, got, compareNetip...); diff != "" {
			t.Fatalf("%s (-model +store):\n%s", what, diff)
		}
	}
	for range 1500 {
		i := some()
		switch random.IntN(4) {
		case 0:
			s.Put(i)
			m[i.Key] = i
		case 1:
			err := s.Insert(i)
			_, taken := m.first(func(o ifstore.Interface) bool {
				return o.Key == i.Key || o.Name == i.Name || slices.ContainsFunc(i.IPs(), func(ip netip.Addr) bool { return slices.Contains(o.IPs(), ip) })
			})
			if (err != nil) != taken {
				t.Fatalf("Insert: %v, the model says taken %v", err, taken)
			}
			if err == nil {
				m[i.Key] = i
			}
		case 2:
			_, err := s.Update(i.Key, "", func(have *ifstore.Interface) error { *have = i; return nil })
			if _, ok := m[i.Key]; ok != (err == nil) {
				t.Fatalf("Update: %v, the model has it: %v", err, ok)
			} else if ok {
				m[i.Key] = i
			}
		case 3:
			_, ok := s.Delete(i.Key)
			if _, has := m[i.Key]; has != ok {
				t.Fatalf("Delete: %v, the model has it: %v", ok, has)
			}
			delete(m, i.Key)
		}
		standing := func(i ifstore.Interface) bool { return i.State != ifstore.StateWithdrawing }
		for n := range values {
			name, ofport, ip := fmt.Sprint("port", n), uint32(n), record(n).Addresses[0].Prefix.Addr()
			want, _ := m.first(func(i ifstore.Interface) bool { return i.Name == name })
			got, _ := s.ByName(name)
			same("ByName", want, got)
			want, _ = m.first(func(i ifstore.Interface) bool { return ofport != 0 && standing(i) && i.OFPort == ofport })
			got, _ = s.ByOFPort(ofport)
			same("ByOFPort", want, got)
			want, _ = m.first(func(i ifstore.Interface) bool { return standing(i) && slices.Contains(i.IPs(), ip) })
			got, _ = s.ByIP(ip)
			same("ByIP", want, got)
		}
		for _, pod := range []string{"pod0", "pod1"} {
			same("ByPod", len(m.find(func(i ifstore.Interface) bool { return i.Pod.Name == pod })), len(s.ByPod("default", pod)))
		}
		same("ByContainer", m.find(func(i ifstore.Interface) bool { return i.ContainerID == "c1" }), s.ByContainer("c1"))
		if s.Len() != len(m) || len(s.List()) != len(m) {
			t.Fatalf("Len %d, List %d, model %d", s.Len(), len(s.List()), len(m))
		}
	}
}

func TestWatch(t *testing.T) {
	s := ifstore.New()
	s.Put(record(1))
	w := s.Watch()
	next := func() []ifstore.Change {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		changes, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	if list := next(); len(list) != 1 || list[0].Interface.Key != key(1) || list[0].Deleted {
		t.Errorf("list %+v", list)
	}
	s.Put(record(2)) // comes and goes unseen
	s.Delete(key(2))
	s.Delete(key(1))
	s.Put(record(3))
	for n := range 50 {
		if _, err := s.Update(key(3), "", func(i *ifstore.Interface) error { i.MTU = n; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	changes := next()
	if len(changes) != 2 || !changes[0].Deleted || changes[0].Interface.Key != key(1) || changes[1].Interface.MTU != 49 {
		t.Errorf("changes %+v", changes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Next with an ended context: %v", err)
	}
	result := make(chan error, 1)
	go func() { _, err := w.Next(context.Background()); result <- err }()
	w.Close()
	if err := <-result; !errors.Is(err, ifstore.ErrWatchClosed) {
		t.Errorf("Next of a closed watch: %v", err)
	}
}

// A watcher that applies what it reads ends with what the store has, whatever
// happened in between.
func TestConcurrentUse(t *testing.T) {
	s := ifstore.New()
	var writers, readers sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		w := s.Watch()
		readers.Go(func() {
			defer w.Close()
			seen := make(map[ifstore.Key]ifstore.Interface)
			for {
				changes, err := w.Next(ctx)
				if err != nil {
					break
				}
				for _, c := range changes {
					if c.Deleted {
						delete(seen, c.Interface.Key)
					} else {
						seen[c.Interface.Key] = c.Interface
					}
				}
				done, ok := seen[ifstore.Key{ContainerID: "last", IfName: "eth0"}]
				if !ok {
					continue
				}
				delete(seen, done.Key)
				for _, i := range s.List() {
					if diff := cmp.Diff(i, seen[i.Key], compareNetip...); i.Key != done.Key && diff != "" {
						t.Errorf("the watcher ends with another record (-store +seen):\n%s", diff)
					}
				}
				if len(seen) != s.Len()-1 {
					t.Errorf("the watcher ends with %d entries, the store with %d", len(seen), s.Len()-1)
				}
				return
			}
			t.Error("the watch ended early")
		})
	}
	for range 4 {
		writers.Go(func() {
			for range 2000 {
				n := rand.IntN(20)
				switch rand.IntN(4) {
				case 0:
					s.Put(record(n))
				case 1:
					s.Delete(key(n))
				case 2:
					_, _ = s.Update(key(n), "", func(i *ifstore.Interface) error { i.OFPort++; return nil })
				case 3:
					s.ByOFPort(uint32(n))
					s.ByIP(record(n).IPs()[0])
					s.List()
				}
			}
		})
	}
	writers.Wait()
	s.Put(ifstore.Interface{Key: ifstore.Key{ContainerID: "last", IfName: "eth0"}})
	readers.Wait()
	cancel()
}
