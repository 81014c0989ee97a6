package ifstore_test

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
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
