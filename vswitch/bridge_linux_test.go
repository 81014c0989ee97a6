package vswitch_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/vswitch"
	"github.com/antrea-lite/podnet/vswitch/vswitchtest"
)

func mac(t testing.TB, s string) ifstore.MAC {
	t.Helper()
	m, err := ifstore.ParseMAC(s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEnsureBridgeMakesItOnce(t *testing.T) {
	sw := vswitchtest.Start(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	if _, err := c.Info(soon(t)); err != nil { // connected
		t.Fatal(err)
	}
	// RC-17: ovs-vswitchd sleeps while the bridge is made.
	do(t, sw.PauseVswitchd)
	created := false
	tells(t, func(ctx context.Context) error {
		info, err := c.EnsureBridge(ctx)
		created = created || info.Created
		return err
	}, func(err error) bool { return created && err != nil && strings.Contains(err.Error(), "no datapath id") })
	do(t, sw.ResumeVswitchd)
	info, err := c.EnsureBridge(soon(t))
	if err != nil || info.Created || info.DatapathID == 0 || info.Datapath != "netdev" {
		t.Errorf("after it went on: %+v, %v", info, err)
	}
	want := "[OpenFlow10, OpenFlow13, OpenFlow15]\nsecure\nnetdev"
	if out := vsctl(t, sw, "get", "bridge", br, "protocols", "fail_mode", "datapath_type"); out != want {
		t.Errorf("bridge has %q", out)
	}
	if out, err := sw.Ofctl("show", "unix:"+sw.MgmtSock(br)); err != nil {
		t.Errorf("OpenFlow 1.5: %v: %s", err, out)
	}
}

func TestEnsureBridgeKeepsWhatOthersMade(t *testing.T) {
	sw := vswitchtest.Start(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	vsctl(t, sw, "add-br", br, "--", "set", "bridge", br, "datapath_type=netdev", "protocols=OpenFlow10,OpenFlow14", "external_ids:theirs=1",
		"--", "add-port", br, veth(t, "foreign0"))
	for range 2 {
		if _, err := c.EnsureBridge(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	want := "[OpenFlow10, OpenFlow14, OpenFlow15]\nsecure\n{theirs=\"1\"}"
	if out := vsctl(t, sw, "get", "bridge", br, "protocols", "fail_mode", "external_ids"); out != want {
		t.Errorf("bridge has %q", out)
	}
	ports, err := c.Ports(soon(t))
	if err != nil || len(ports) != 2 || ports[1].Name != "foreign0" || len(ports[1].ExternalIDs) != 0 {
		t.Errorf("ports: %+v, %v", ports, err)
	}
}

// Empty protocols stand for a default set that other tools rely on.
func TestEnsureBridgeFillsEmptyProtocols(t *testing.T) {
	sw := vswitchtest.Start(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	vsctl(t, sw, "add-br", br, "--", "set", "bridge", br, "datapath_type=netdev")
	if _, err := c.EnsureBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	if out := vsctl(t, sw, "get", "bridge", br, "protocols"); out != "[OpenFlow10, OpenFlow13, OpenFlow15]" {
		t.Errorf("protocols %s", out)
	}
}

// A write to an unchanged bridge would close every OpenFlow session (fact 30).
func TestEnsureBridgeWritesNothingWhenItFits(t *testing.T) {
	sw, _ := setUp(t)
	var o observer
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Observer: &o})
	if info, err := c.EnsureBridge(soon(t)); err != nil || info.Created {
		t.Fatalf("%+v, %v", info, err)
	}
	if n := o.count("bridge"); n != 0 {
		t.Errorf("%d transactions for a bridge that fits", n)
	}
}

// RS-21.
func TestBridgeOfTheOtherDatapath(t *testing.T) {
	sw := vswitchtest.Start(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	vsctl(t, sw, "--no-wait", "add-br", br) // datapath_type "" is the kernel's
	_, err := c.EnsureBridge(soon(t))
	if !errors.Is(err, vswitch.ErrDatapathType) || !strings.Contains(err.Error(), `"system"`) || !strings.Contains(err.Error(), `"netdev"`) || !strings.Contains(err.Error(), "del-br "+br) {
		t.Errorf("error does not name both and the remedy: %v", err)
	}
}

func TestBridgeNameIsAPorts(t *testing.T) {
	sw, _ := setUp(t)
	vsctl(t, sw, "add-port", br, "br-x")
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock(), Bridge: "br-x"})
	if _, err := c.EnsureBridge(soon(t)); !errors.Is(err, podnet.ErrPortExists) || !strings.Contains(err.Error(), "on bridge br0") {
		t.Errorf("%v", err)
	} else {
		t.Log(err)
	}
}

// Several agents' worth of callers: one makes the bridge, the others find it.
func TestEnsureBridgeRace(t *testing.T) {
	sw := vswitchtest.Start(t)
	infos := make([]vswitch.BridgeInfo, 8)
	clients := make([]*vswitch.Client, len(infos))
	for i := range clients {
		clients[i] = start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
		if _, err := clients[i].Info(soon(t)); err != nil {
			t.Fatal(err)
		}
	}
	each(len(infos), func(i int) {
		var err error
		if infos[i], err = clients[i].EnsureBridge(soon(t)); err != nil {
			t.Error(err)
		}
	})
	made := 0
	for _, info := range infos {
		if info.Created {
			made++
		}
		if info.UUID != infos[0].UUID || info.DatapathID != infos[0].DatapathID {
			t.Errorf("%+v and %+v", info, infos[0])
		}
	}
	if made != 1 {
		t.Errorf("%d callers say they made the bridge", made)
	}
}

func TestBridgeIsMissing(t *testing.T) {
	sw := vswitchtest.Start(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	if _, err := c.AddPort(soon(t), port("x")); err == nil || !strings.Contains(err.Error(), "bridge br0 does not exist") {
		t.Errorf("AddPort: %v", err)
	}
	if _, err := c.Ports(soon(t)); err == nil {
		t.Error("Ports of no bridge")
	}
	if err := c.DeletePort(soon(t), podnet.PortKey{Name: "x"}); err != nil {
		t.Errorf("DeletePort: %v", err)
	}
	if _, err := c.EnsureBridge(soon(t)); err != nil {
		t.Fatal(err)
	}
	key := add(t, c, "x")
	w := c.WatchOFPorts()
	defer w.Close()
	vsctl(t, sw, "del-br", br)
	until(t, w, "the port to go with its bridge", func() bool { _, err := c.OFPort(soon(t), key); return errors.Is(err, podnet.ErrNoPort) })
	if info, err := c.EnsureBridge(soon(t)); err != nil || !info.Created {
		t.Errorf("made again: %+v, %v", info, err)
	}
}

// RS-22: a second Open vSwitch in the network namespace cannot have the
// userspace datapath's devices, and says nothing about it in the database.
func TestDatapathCannotBeMade(t *testing.T) {
	setUp(t)
	sw := vswitchtest.Start(t)
	c := start(t, vswitch.Config{Endpoint: "unix:" + sw.DBSock()})
	tells(t, func(ctx context.Context) error { _, err := c.EnsureBridge(ctx); return err },
		func(err error) bool { return err != nil && strings.Contains(err.Error(), "no datapath id yet") })
}

func TestGateway(t *testing.T) {
	sw, c := setUp(t)
	ids := map[string]string{"podnet-owner": "test", "antrea-type": "gateway"}
	key, err := c.EnsureInternalPort(soon(t), "gw0", mac(t, "0a:58:0a:00:00:01"), ids)
	if err != nil {
		t.Fatal(err)
	}
	n := number(t, c, key)
	ids["more"] = "x"
	again, err := c.EnsureInternalPort(soon(t), "gw0", mac(t, "0a:58:0a:00:00:02"), ids)
	if err != nil || again != key || number(t, c, again) != n {
		t.Errorf("second time: %+v, %v", again, err)
	}
	want := "\"0a:58:0a:00:00:01\"\n\"0a:58:0a:00:00:01\"\ninternal"
	if out := vsctl(t, sw, "get", "interface", "gw0", "mac", "mac_in_use", "type"); out != want {
		t.Errorf("interface has %q", out)
	}
	if out := vsctl(t, sw, "get", "port", "gw0", "external_ids"); out != `{antrea-type=gateway, more=x, podnet-owner=test}` {
		t.Errorf("external_ids %s", out)
	}
	vsctl(t, sw, "add-port", br, "gw1", "--", "set", "interface", "gw1", "type=internal")
	if _, err := c.EnsureInternalPort(soon(t), "gw1", ifstore.MAC{}, ids); !errors.Is(err, podnet.ErrPortExists) || !strings.Contains(err.Error(), "del-port gw1") {
		t.Errorf("a stranger's internal port: %v", err)
	}
	add(t, c, veth(t, "gw2"))
	if _, err := c.EnsureInternalPort(soon(t), "gw2", ifstore.MAC{}, ids); !errors.Is(err, podnet.ErrPortExists) {
		t.Errorf("a Pod's port: %v", err)
	}
}

func TestInfoAndStatus(t *testing.T) {
	sw, c := setUp(t)
	vsctl(t, sw, "set", "Open_vSwitch", ".", "ovs_version=3.1.0")
	w := c.WatchOFPorts()
	defer w.Close()
	add(t, c, "x") // anything later than the version
	info, err := c.Info(soon(t))
	if err != nil || info.OVSVersion != "3.1.0" || info.DBSchema == "" || len(info.DatapathTypes) == 0 {
		t.Errorf("%+v, %v", info, err)
	}
	t.Logf("%+v", info)
	if st := c.Status(); !st.Connected || st.Since.IsZero() || st.LastError != "" || st.Reconnects != 0 {
		t.Errorf("%+v", st)
	}
}

func TestConfig(t *testing.T) {
	for _, cfg := range []vswitch.Config{
		{},
		{Bridge: br},
		{Bridge: br, Endpoint: "ssl:1.2.3.4:6640"},
		{Bridge: "a-name-of-16-char", Endpoint: "unix:/x"},
		{Bridge: br, Endpoint: "unix:/x", Datapath: "dpdk"},
	} {
		if _, err := vswitch.New(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		} else {
			t.Log(err)
		}
	}
}
