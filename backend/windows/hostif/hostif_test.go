package hostif_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/antrea-lite/podnet/backend/windows/hostif"
)

func TestNamesAreTheAliases(t *testing.T) {
	broken := errors.New("no list today")
	var fails error
	names := hostif.Names(func(context.Context) ([]hostif.Adapter, error) {
		return []hostif.Adapter{{Alias: "Ethernet"}, {Alias: hostif.Alias("pod1234")}}, fails
	})
	if got, err := names(t.Context()); err != nil || !slices.Equal(got, []string{"Ethernet", "vEthernet (pod1234)"}) {
		t.Errorf("%q, %v", got, err)
	}
	fails = broken
	if got, err := names(t.Context()); !errors.Is(err, broken) || got != nil {
		t.Errorf("of a list that failed: %q, %v", got, err)
	}
}

func TestFind(t *testing.T) {
	list := []hostif.Adapter{{Alias: "a", Index: 1}, {Alias: "b", Index: 2}}
	if a, ok := hostif.Find(list, "b"); !ok || a.Index != 2 {
		t.Errorf("%+v, %v", a, ok)
	}
	if a, ok := hostif.Find(list, "c"); ok {
		t.Errorf("%+v", a)
	}
}
