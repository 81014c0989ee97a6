package vswitch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

// fast reconnects quickly: tests break connections often.
func fast(endpoint string) vswitch.Config {
	return vswitch.Config{Endpoint: endpoint, BackoffMax: 50 * time.Millisecond, ProbeInterval: 2 * time.Second}
}

// DB-RESTART: reads wait for a current view (DB-12), writes too, and what
// changed meanwhile is reported.
func TestRestartOfTheDatabase(t *testing.T) {
	sw, _ := setUp(t)
	c := start(t, fast("unix:"+sw.DBSock()))
	key := add(t, c, veth(t, "db1"))
	n := number(t, c, key)
	w := c.WatchOFPorts()
	defer w.Close()
	do(t, sw.StopDB)
	tells(t, func(ctx context.Context) error { _, err := c.OFPort(ctx, key); return err }, func(err error) bool {
		return errors.Is(err, podnet.ErrNotConnected)
	})
	if _, err := c.AddPort(within(t, 100*time.Millisecond), port("pdb1")); !errors.Is(err, podnet.ErrNotConnected) || errors.Is(err, podnet.ErrOutcomeUnknown) {
		t.Errorf("AddPort while OVSDB is away: %v", err)
	} else {
		t.Log(err)
	}
	if st := c.Status(); st.Connected || st.LastError == "" {
		t.Errorf("status %+v", st)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if got, err := c.OFPort(soon(t), key); got != n || err != nil {
			t.Errorf("OFPort that waited: %d, %v", got, err)
		}
	})
	var late podnet.PortKey
	wg.Go(func() { late = add(t, c, "pdb1") })
	do(t, sw.StartDB)
	wg.Wait()
	number(t, c, late)
	if st := c.Status(); !st.Connected || st.Reconnects == 0 {
		t.Errorf("status %+v", st)
	}
	until(t, w, "news of the late port", func() bool { _, err := c.OFPort(soon(t), late); return err == nil })
	if got := number(t, c, key); got != n {
		t.Errorf("number %d became %d", n, got)
	}
}

// What happens to ports while we are away is reported once we are back.
func TestWatchReportsWhatWasMissed(t *testing.T) {
	sw, _ := setUp(t)
	p := vswitchtest.StartProxy(t, sw.Dir+"/proxy.sock", sw.DBSock())
	c := start(t, fast(p.Endpoint()))
	gone, same, reborn := add(t, c, "gone"), add(t, c, "same"), add(t, c, "reborn")
	for _, k := range []podnet.PortKey{gone, same, reborn} {
		c.WaitOFPort(soon(t), k)
	}
	w := c.WatchOFPorts()
	defer w.Close()
	p.Refuse(true)
	p.BreakAll()
	vsctl(t, sw, "del-port", br, "gone")
	vsctl(t, sw, "del-port", br, "reborn", "--", "add-port", br, "reborn")
	vsctl(t, sw, "add-port", br, "new")
	p.Refuse(false)
	names, err := w.Next(soon(t))
	if err != nil || strings.Join(names, " ") != "gone new reborn" {
		t.Errorf("after the reconnect: %v, %v", names, err)
	}
	if _, err := c.OFPort(soon(t), same); errors.Is(err, podnet.ErrNoPort) {
		t.Error(err)
	}
}

// The server was never there: calls wait, errors say what is missing.
func TestNoServerYet(t *testing.T) {
	dir := t.TempDir()
	c := start(t, fast("unix:"+dir+"/db.sock"))
	tells(t, func(ctx context.Context) error { _, err := c.EnsureBridge(ctx); return err }, func(err error) bool {
		return errors.Is(err, podnet.ErrNotConnected) && strings.Contains(err.Error(), dir+"/db.sock") && strings.Contains(err.Error(), "no such file")
	})
}

// DB-15: a newer schema while we run.
func TestSchemaConversion(t *testing.T) {
	sw, _ := setUp(t)
	c := start(t, fast("unix:"+sw.DBSock()))
	key := add(t, c, veth(t, "cv1"))
	n := number(t, c, key)
	before, err := c.Info(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("/usr/share/openvswitch/vswitch.ovsschema")
	if err != nil {
		t.Fatal(err)
	}
	newer := strings.Replace(string(schema), `"version": "`+before.DBSchema+`"`, `"version": "99.0.0"`, 1)
	newer = strings.Replace(newer, `"ofport_request": {`, `"brand_new": {"type": "string"}, "ofport_request": {`, 1)
	file := sw.Dir + "/newer.ovsschema"
	if err := os.WriteFile(file, []byte(newer), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ovsdb-client", "convert", "unix:"+sw.DBSock(), file).CombinedOutput(); err != nil {
		t.Fatalf("convert: %v: %s", err, out)
	}
	w := c.WatchOFPorts()
	defer w.Close()
	vsctl(t, sw, "--no-wait", "add-port", br, "after")
	until(t, w, "the port made after the conversion", func() bool {
		_, err := c.OFPort(soon(t), podnet.PortKey{Name: "after"})
		return !errors.Is(err, podnet.ErrNoPort)
	})
	info, err := c.Info(soon(t))
	if err != nil || info.DBSchema != "99.0.0" {
		t.Errorf("info %+v, %v", info, err)
	}
	if got := number(t, c, key); got != n {
		t.Errorf("number %d became %d", n, got)
	}
	add(t, c, "pcv1")
	t.Logf("status %+v", c.Status())
}

func TestOldSchemaIsNamed(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "old")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	schema, err := os.ReadFile("/usr/share/openvswitch/vswitch.ovsschema")
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(string(schema), `"datapath_types": {`, `"renamed_types": {`, 1)
	if err := os.WriteFile(dir+"/schema", []byte(old), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("ovsdb-tool", "create", dir+"/db", dir+"/schema").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command("ovsdb-server", dir+"/db", "--remote=punix:"+dir+"/sock", "--unixctl="+dir+"/ctl", "--pidfile="+dir+"/pid", "-vconsole:off")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	c := start(t, fast("unix:"+dir+"/sock"))
	tells(t, func(ctx context.Context) error { _, err := c.Info(ctx); return err }, func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "too old") && strings.Contains(err.Error(), "Open_vSwitch.datapath_types")
	})
}

// CC-*, DB-3, DB-4: everything at once while the server keeps breaking connections.
// A watchdog ends the test when nothing moves.
func TestStorm(t *testing.T) {
	sw, _ := setUp(t)
	p := vswitchtest.StartProxy(t, sw.Dir+"/proxy.sock", sw.DBSock())
	c := start(t, fast(p.Endpoint()))
	var done, unknown atomic.Int64
	stop, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			for n := 0; stop.Err() == nil; n++ {
				name := fmt.Sprintf("s%d", i)
				ctx := soon(t)
				key, err := c.AddPort(ctx, port(name))
				if err != nil {
					t.Errorf("add %s: %v", name, err)
					return
				}
				if _, err := c.OFPort(ctx, key); errors.Is(err, podnet.ErrNoPort) {
					t.Errorf("%s: %v", name, err)
				}
				if n%3 == 0 {
					quick, cancel := context.WithTimeout(ctx, time.Millisecond)
					if _, err := c.AddPort(quick, port(name+"x")); errors.Is(err, podnet.ErrOutcomeUnknown) {
						unknown.Add(1)
					} else if err == nil {
						c.DeletePort(ctx, podnet.PortKey{Name: name + "x"})
					}
					cancel()
				}
				if err := c.DeletePort(ctx, key); err != nil {
					t.Errorf("delete %s: %v", name, err)
				}
				done.Add(1)
			}
		})
	}
	wg.Go(func() {
		w := c.WatchOFPorts()
		defer w.Close()
		for {
			if _, err := w.Next(stop); err != nil {
				return
			}
			c.Ports(stop)
			c.Status()
		}
	})
	wg.Go(func() {
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.BreakAll()
			case <-stop.Done():
				return
			}
		}
	})
	wg.Wait()
	t.Logf("%d ports came and went over %d connections, %d callers left early", done.Load(), p.Conns(), unknown.Load())
	if done.Load() == 0 {
		t.Error("nothing moved")
	}
	// Nothing is left, those that nobody waited for included.
	w := c.WatchOFPorts()
	defer w.Close()
	until(t, w, "an empty bridge", func() bool { ports, err := c.Ports(soon(t)); return err == nil && len(ports) == 1 })
	if out := vsctl(t, sw, "--no-wait", "list-ports", br); out != "" {
		t.Errorf("left: %s", out)
	}
}

func TestOverTCP(t *testing.T) {
	sw, _ := setUp(t)
	if out, err := exec.Command("ovs-appctl", "--target="+sw.Dir+"/db.ctl", "ovsdb-server/add-remote", "ptcp:16640:127.0.0.1").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	c := start(t, fast("tcp:127.0.0.1:16640"))
	number(t, c, add(t, c, veth(t, "tcp1")))
}
