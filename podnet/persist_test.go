package podnet_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

func TestExternalIDsAreAntreas(t *testing.T) {
	i := ifstore.Interface{
		Key:  ifstore.Key{ContainerID: "0f3a", IfName: "net1"},
		Pod:  ifstore.Pod{Namespace: "default", Name: "web-0", UID: "7b1c"},
		Name: "pod0f3a", Gen: "row", OFPort: 5, State: ifstore.StateReady,
		MAC:   ifstore.MAC{2, 0, 0, 0, 0, 1},
		NetNS: "/run/netns/x", IPAM: "host-local", Leased: true, VLAN: 10, MTU: 1400,
		Addresses: []ifstore.Address{
			{Prefix: netip.MustParsePrefix("10.0.0.5/24"), Gateway: netip.MustParseAddr("10.0.0.1")},
			{Prefix: netip.MustParsePrefix("fd00::5/64")},
		},
		Routes: []ifstore.Route{
			{Dst: netip.MustParsePrefix("0.0.0.0/0")},
			{Dst: netip.MustParsePrefix("fd01::/48"), GW: netip.MustParseAddr("fd00::9"), MTU: 1280},
		},
		Extra:   map[string]string{"endpoint": "abc"},
		Created: time.Date(2026, 8, 1, 12, 0, 0, 5, time.UTC),
	}
	want := map[string]string{
		"antrea-type": "container", "attached-mac": "02:00:00:00:00:01", "ip-address": "10.0.0.5,fd00::5",
		"container-id": "0f3a", "pod-name": "web-0", "pod-namespace": "default", "if-dev": "net1", "net-ns": "/run/netns/x",
		"podnet-owner": "me", "podnet-pod-uid": "7b1c", "podnet-ipam": "host-local", "podnet-leased": "true",
		"podnet-addresses": "10.0.0.5/24>10.0.0.1,fd00::5/64", "podnet-routes": "0.0.0.0/0,fd01::/48>fd00::9@1280",
		"podnet-vlan": "10", "podnet-mtu": "1400", "podnet-created": "2026-08-01T12:00:00.000000005Z", "podnet-x-endpoint": "abc",
	}
	got := podnet.EncodeExternalIDs("me", i)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("external_ids (-want +got):\n%s", diff)
	}
	// A bare layer-2 interface of no Pod says no more than it has.
	got = podnet.EncodeExternalIDs("me", ifstore.Interface{Key: ifstore.Key{ContainerID: "0f3a", IfName: "eth0"}})
	want = map[string]string{"antrea-type": "container", "container-id": "0f3a", "podnet-owner": "me"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("external_ids of a bare interface (-want +got):\n%s", diff)
	}
}

func randomInterface(random *rand.Rand) ifstore.Interface {
	addr := func() netip.Addr {
		var b [16]byte
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		if random.IntN(2) == 0 {
			return netip.AddrFrom4([4]byte(b[:4]))
		}
		return netip.AddrFrom16(b)
	}
	text := func() string {
		letters := []rune("aZ09._-/:,>@=\"ü ")
		var s strings.Builder
		for range random.IntN(12) {
			s.WriteRune(letters[random.IntN(len(letters))])
		}
		return s.String()
	}
	i := ifstore.Interface{
		Key:     ifstore.Key{ContainerID: fmt.Sprintf("c%x", random.Uint64()), IfName: []string{"eth0", "net1", "e"}[random.IntN(3)]},
		Pod:     ifstore.Pod{Namespace: text(), Name: text(), UID: text()},
		NetNS:   text(),
		IPAM:    text(),
		Leased:  random.IntN(2) == 0,
		VLAN:    uint16(random.IntN(4094 + 1)),
		MTU:     random.IntN(65536),
		Created: time.Unix(random.Int64N(1<<33), random.Int64N(1e9)).UTC(),
	}
	for b := range i.MAC {
		i.MAC[b] = byte(random.Uint32())
	}
	for range random.IntN(4) {
		a := ifstore.Address{Prefix: netip.PrefixFrom(addr(), random.IntN(33))}
		if random.IntN(2) == 0 {
			a.Gateway = addr()
		}
		i.Addresses = append(i.Addresses, a)
	}
	for range random.IntN(4) {
		r := ifstore.Route{Dst: netip.PrefixFrom(addr(), random.IntN(33)), MTU: random.IntN(2) * random.IntN(9000)}
		if random.IntN(2) == 0 {
			r.GW = addr()
		}
		i.Routes = append(i.Routes, r)
	}
	for range random.IntN(4) {
		if i.Extra == nil {
			i.Extra = make(map[string]string)
		}
		i.Extra[text()] = "v" + text()
	}
	return i
}

func TestExternalIDsRoundTrip(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		want := randomInterface(random)
		ids := podnet.EncodeExternalIDs("me", want)
		got, err := podnet.DecodeExternalIDs(ids)
		if err != nil {
			t.Fatalf("%v\nof %v", err, ids)
		}
		if diff := cmp.Diff(want, got, compareNetip...); diff != "" {
			t.Fatalf("round trip of %v (-want +got):\n%s", ids, diff)
		}
	}
}

func TestDecodeNamesTheKeyAtFault(t *testing.T) {
	for key, value := range map[string]string{
		"antrea-type":      "tunnel",
		"container-id":     "../etc",
		"if-dev":           "a/b",
		"attached-mac":     "02:00:00:00:00",
		"podnet-addresses": "10.0.0.5/24,",
		"podnet-routes":    "0.0.0.0/0@x",
		"podnet-vlan":      "4095",
		"podnet-mtu":       "-1",
		"podnet-created":   "yesterday",
		"podnet-leased":    "perhaps",
	} {
		ids := podnet.EncodeExternalIDs("me", ifstore.Interface{Key: ifstore.Key{ContainerID: "c1", IfName: "eth0"}})
		ids[key] = value
		_, err := podnet.DecodeExternalIDs(ids)
		if err == nil || !strings.Contains(err.Error(), value) {
			t.Errorf("%s=%q: %v, want an error with the value", key, value, err)
		}
	}
}

// FuzzDecodeExternalIDs: no input panics, and what is accepted survives another
// round through the database.
func FuzzDecodeExternalIDs(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		ids := podnet.EncodeExternalIDs("me", randomInterface(random))
		f.Add(ids["container-id"], ids["if-dev"], ids["attached-mac"], ids["podnet-addresses"], ids["podnet-routes"], ids["podnet-vlan"], ids["podnet-mtu"], ids["podnet-created"])
	}
	f.Fuzz(func(t *testing.T, id, dev, mac, addresses, routes, vlan, mtu, created string) {
		ids := map[string]string{
			"antrea-type": "container", "podnet-owner": "me", "container-id": id, "if-dev": dev, "attached-mac": mac,
			"podnet-addresses": addresses, "podnet-routes": routes, "podnet-vlan": vlan, "podnet-mtu": mtu, "podnet-created": created,
		}
		first, err := podnet.DecodeExternalIDs(ids)
		if err != nil {
			return
		}
		second, err := podnet.DecodeExternalIDs(podnet.EncodeExternalIDs("me", first))
		if err != nil {
			t.Fatalf("what was accepted is refused the second time: %v", err)
		}
		if !first.Created.Equal(second.Created) {
			t.Errorf("created %v, then %v", first.Created, second.Created)
		}
		first.Created, second.Created = time.Time{}, time.Time{} // another zone is the same moment
		if diff := cmp.Diff(first, second, compareNetip...); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
