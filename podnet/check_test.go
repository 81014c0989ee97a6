package podnet_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// CN-13: break each thing in turn; Check names it.
func TestCheckNamesEveryDifference(t *testing.T) {
	for name, test := range map[string]struct {
		breakIt func(t *testing.T, w *podnettest.World, i ifstore.Interface)
		want    podnet.Want
		text    string
	}{
		"cable": {text: "link: host interface", breakIt: func(t *testing.T, w *podnettest.World, i ifstore.Interface) {
			if err := w.Linker.Unlink(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}},
		"external_ids": {text: `port: external_ids:pod-name is "x", want "pod-c1"`, breakIt: func(t *testing.T, w *podnettest.World, i ifstore.Interface) {
			if err := w.Bridge.SetExternalIDs(t.Context(), podnet.PortKey{Name: i.Name, Gen: i.Gen}, map[string]string{"pod-name": "x"}); err != nil {
				t.Fatal(err)
			}
		}},
		"port":   {text: "no such port", breakIt: func(_ *testing.T, w *podnettest.World, i ifstore.Interface) { w.Bridge.Remove(i.Name) }},
		"number": {text: "OpenFlow port is 99, the flows use 1", breakIt: func(_ *testing.T, w *podnettest.World, i ifstore.Interface) { w.Bridge.SetOFPort(i.Name, 99, "") }},
		"flows":  {text: "flows: no flows on OpenFlow port 1", breakIt: func(_ *testing.T, w *podnettest.World, _ ifstore.Interface) { w.Flows.Lose() }},
		"address": {text: "addresses: [10.10.0.2] is not reserved", breakIt: func(t *testing.T, w *podnettest.World, i ifstore.Interface) {
			if err := w.Addresses.Release(t.Context(), i.Key); err != nil {
				t.Fatal(err)
			}
		}},
		"wanted namespace": {text: "network namespace is /run/netns/c1, want /x", want: podnet.Want{NetNS: "/x"}},
		"wanted address":   {text: "addresses is [10.10.0.2], want [10.10.0.2 fd00::1]", want: podnet.Want{IPs: []netip.Addr{netip.MustParseAddr("fd00::1"), netip.MustParseAddr("10.10.0.2")}}},
		"wanted MAC":       {text: "want 02:00:00:00:00:09", want: podnet.Want{MAC: ifstore.MAC{2, 0, 0, 0, 0, 9}}},
		"wanted MTU":       {text: "MTU is 1500, want 9000", want: podnet.Want{MTU: 9000}},
	} {
		t.Run(name, func(t *testing.T) {
			w := podnettest.NewWorld()
			cfg := w.Config()
			n, err := podnet.New(cfg) // not run: nothing repairs what the test breaks
			if err != nil {
				t.Fatal(err)
			}
			iface := mustAdd(t, n, "c1")
			if err := n.Check(t.Context(), iface.Key); err != nil {
				t.Fatalf("Check of a whole interface: %v", err)
			}
			if test.breakIt != nil {
				test.breakIt(t, w, iface)
			}
			err = n.CheckAgainst(t.Context(), iface.Key, test.want)
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("Check: %v\nwant %q in it", err, test.text)
			}
		})
	}
}

func TestCheckOfTheUnknownAndTheUnfinished(t *testing.T) {
	w := podnettest.NewWorld()
	cfg := w.Config()
	cfg.Readiness = deaf{cfg.Readiness}
	n, err := podnet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Check(t.Context(), keyOf("c1")); !errors.Is(err, podnet.ErrNotFound) {
		t.Errorf("Check of the unknown: %v", err)
	}
	mustAdd(t, n, "c1")
	if err := n.Check(t.Context(), keyOf("c1")); err == nil || !strings.Contains(err.Error(), "waiting for: an OpenFlow port number") {
		t.Errorf("Check of one that waits: %v", err)
	}
}

// CN-12: the texts carry container, Pod with UID, step, elapsed time and values.
func TestErrorTexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := podnettest.NewWorld()
		n, stop := podnettest.Start(t, w.Config())
		defer stop()
		w.Bridge.Slow(true)
		add := func(id string, timeout time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := n.Add(ctx, podnettest.NewRequest(id))
			return err
		}
		wantText := func(err error, want string) {
			t.Helper()
			if err == nil || err.Error() != want {
				t.Errorf("error text\n  %v\nwant\n  %s", err, want)
			}
		}
		name := podnettest.HostName(keyOf("c1"))
		wantText(add("c1", 3*time.Second),
			"add container c1, interface eth0, Pod default/pod-c1 (UID uid-c1): step number failed after 3s: no OpenFlow port number: "+name+": no OpenFlow port number yet: context deadline exceeded")

		w.Linker.Before("Link", func(context.Context) error { time.Sleep(1234567 * time.Microsecond); return errBoom })
		wantText(add("c1", time.Minute),
			"add container c1, interface eth0, Pod default/pod-c1 (UID uid-c1): step link failed after 1.235s: boom")
		w.Linker.Before("Link", nil)
		w.Bridge.Slow(false)

		mustAdd(t, n, "c1")
		req := podnettest.NewRequest("c1")
		req.Pod.UID, req.MTU = "uid-other", 1400
		_, err := n.Add(t.Context(), req)
		wantText(err, `add container c1, interface eth0, Pod default/pod-c1 (UID uid-other): step record failed after 0s: bad request: the interface exists with other parameters: Pod UID is uid-c1, the request says uid-other; MTU is 1500, the request says 1400`)

		w.Flows.Away(true)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		wantText(n.Delete(ctx, keyOf("c1")),
			"delete container c1, interface eth0, Pod default/pod-c1 (UID uid-c1): step removal failed after 10s: try again later: the removal goes on: not connected: context deadline exceeded")
		_, err = n.Add(t.Context(), podnettest.NewRequest("c1"))
		if want := "try again later: an earlier interface of that key is still being removed"; err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("error text %v, want %q at its end", err, want)
		}
		w.Flows.Away(false)
	})
}

func TestUpdatesListThenWatch(t *testing.T) {
	w := podnettest.NewWorld()
	n := start(t, w.Config())
	c1 := mustAdd(t, n, "c1")
	updates := n.Updates()
	defer updates.Close()
	next := func() []podnet.Update {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		list, err := updates.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := next(); len(list) != 1 || list[0].Removed || list[0].Interface.Gen != c1.Gen || list[0].Interface.OFPort != c1.OFPort {
		t.Errorf("list: %+v", list)
	}
	// Deleted and added again between two reads: both are told.
	mustDelete(t, n, "c1")
	again := mustAdd(t, n, "c1")
	list := next()
	if len(list) != 2 || !list[0].Removed || list[0].Interface.Gen != c1.Gen || list[1].Removed || list[1].Interface.Gen != again.Gen {
		t.Errorf("after delete and add: %+v", list)
	}
	mustDelete(t, n, "c1")
	if list := next(); len(list) != 1 || !list[0].Removed || !slices.Equal(list[0].Interface.IPs(), again.IPs()) {
		t.Errorf("after delete: %+v", list)
	}
	empty := n.Updates()
	if list, err := empty.Next(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("list of nothing: %v, %v; want it at once", list, err)
	}
	empty.Close()
	if _, err := empty.Next(t.Context()); !errors.Is(err, ifstore.ErrWatchClosed) {
		t.Errorf("Next after Close: %v", err)
	}
}
