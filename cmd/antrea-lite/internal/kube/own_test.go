package kube

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	k8stesting "k8s.io/client-go/testing"
)

// A restart of the agent while the API server is away goes on with the copy.
func TestOwnNodeSurvivesAnAPIServerThatIsAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "node.json")
	want := Node{Name: "n1", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24")}, Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	var said []string
	say := func(err error) { said = append(said, err.Error()) }
	synctest.Test(t, func(t *testing.T) {
		a := newAPI(nodeObject("n1", []string{"10.1.0.0/24"}, "192.0.2.1"))
		away := func(k8stesting.Action) error { return errors.New("connection refused") }
		a.set(away)
		go func() {
			time.Sleep(time.Minute)
			a.set(nil)
		}()
		begun := time.Now()
		if got, err := OwnNode(t.Context(), a, "n1", path, say); err != nil || !reflect.DeepEqual(got, want) || time.Since(begun) < time.Minute {
			t.Errorf("first start: %+v %v after %v", got, err, time.Since(begun))
		}
		if len(said) != 1 || !strings.Contains(said[0], "connection refused") {
			t.Errorf("it said %q, want the one reason once", said)
		}
		a.set(away)
		begun = time.Now()
		if got, err := OwnNode(t.Context(), a, "n1", path, say); err != nil || !reflect.DeepEqual(got, want) || time.Since(begun) > 10*time.Second {
			t.Errorf("with a copy: %+v %v after %v", got, err, time.Since(begun))
		}
		// The Node was made anew with another range.
		b := newAPI(nodeObject("n1", []string{"10.7.0.0/24"}, "192.0.2.1"))
		if got, err := OwnNode(t.Context(), b, "n1", path, say); err != nil || got.PodCIDRs[0].String() != "10.7.0.0/24" {
			t.Errorf("the API server wins: %+v %v", got, err)
		}
		for _, bad := range []string{"", "{", `{"Name":"n2","PodCIDRs":["10.2.0.0/24"]}`} {
			if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := OwnNode(t.Context(), b, "n1", path, say); err != nil || got.Name != "n1" {
				t.Errorf("copy %q: %+v %v", bad, got, err)
			}
		}
	})
}

func TestPeersOfAnEarlierProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "peers.json")
	if got, err := LoadPeers(path); got != nil || err != nil {
		t.Errorf("no copy: %v %v", got, err)
	}
	want := []Node{{Name: "b", PodCIDRs: []netip.Prefix{netip.MustParsePrefix("10.2.0.0/24")}, Addresses: []netip.Addr{netip.MustParseAddr("2001:db8::2")}}}
	if err := SavePeers(path, want); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadPeers(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	if err := os.WriteFile(path, []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := LoadPeers(path); err == nil || got != nil {
		t.Errorf("half a copy: %v %v", got, err)
	}
}
