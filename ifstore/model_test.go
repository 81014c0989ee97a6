package ifstore_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
)

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
