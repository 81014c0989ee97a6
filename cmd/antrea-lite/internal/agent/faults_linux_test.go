package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/antrea-lite/podnet/cmd/antrea-lite/internal/api"
	"github.com/antrea-lite/podnet/cmd/internal/cniapi"
)

func TestSecondAgentNamesTheFirst(t *testing.T) {
	n := newNode(t)
	n.startReady()
	err := n.run(t.Context())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("second agent: %v", err)
	}
}

// TestRefusals: what waiting cannot cure ends the agent with one message.
func TestRefusals(t *testing.T) {
	n := newNode(t)
	refused := func(what string, words ...string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		err := n.run(ctx)
		if err == nil {
			t.Errorf("%s: the agent ran", what)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", what, err, w)
			}
		}
	}
	vsctl := func(args ...string) {
		t.Helper()
		if _, err := n.sw.Vsctl(args...); err != nil {
			t.Fatal(err)
		}
	}
	vsctl("set", "Open_vSwitch", ".", "ovs_version=2.5.12")
	refused("old Open vSwitch", "2.5.12", MinOVS)
	vsctl("clear", "Open_vSwitch", ".", "ovs_version")

	vsctl("--no-wait", "add-br", n.conf.Bridge)
	refused("wrong datapath", n.conf.Bridge, "system", "netdev", "del-br")
	vsctl("--no-wait", "del-br", n.conf.Bridge)

	if err := n.sw.AddBridge(n.conf.Bridge, "netdev"); err != nil {
		t.Fatal(err)
	}
	vsctl("--no-wait", "add-port", n.conf.Bridge, "web-1", "--", "set", "port", "web-1", "external_ids={antrea-type=container,pod-name=web-1}")
	refused("a running Antrea", "web-1", n.conf.Bridge)
	vsctl("--no-wait", "del-port", n.conf.Bridge, "web-1")

	vsctl("add-port", n.conf.Bridge, n.conf.Gateway.Name, "--", "set", "interface", n.conf.Gateway.Name, "type=internal")
	refused("gateway's name taken", n.conf.Gateway.Name, "del-port")
	vsctl("del-br", n.conf.Bridge)

	if err := os.WriteFile(n.conf.CNISocket, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused("a file where the socket goes", n.conf.CNISocket, "no socket")
	if err := os.Remove(n.conf.CNISocket); err != nil {
		t.Fatal(err)
	}
}

// TestStopUndoesWhatRuns: an ADD that waits for its number is taken back before the agent ends.
func TestStopUndoesWhatRuns(t *testing.T) {
	n := newNode(t)
	n.startReady()
	n.namespace("a")
	if err := n.sw.PauseVswitchd(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := n.cni("ADD", "a", "")
		done <- err
	}()
	n.until("the port is in OVSDB", func() error {
		ports, err := n.sw.Vsctl("--no-wait", "list-ports", n.conf.Bridge)
		if err == nil && !strings.Contains(ports, n.conf.HostPrefix) {
			err = errors.New("no port of a Pod")
		}
		return err
	})
	start := time.Now()
	n.halt()
	t.Logf("ended after %v", time.Since(start))
	if err := <-done; err == nil {
		t.Error("the ADD succeeded")
	}
	if ports, err := n.sw.Vsctl("--no-wait", "list-ports", n.conf.Bridge); err != nil || strings.Contains(ports, n.conf.HostPrefix) {
		t.Errorf("ports %q %v", ports, err)
	}
	if err := n.sw.ResumeVswitchd(); err != nil {
		t.Fatal(err)
	}
	n.startReady()
	n.nothingLeft()
}

// TestKilledPluginLeavesNothing, whenever it is killed.
func TestKilledPluginLeavesNothing(t *testing.T) {
	n := newNode(t)
	n.startReady()
	n.namespace("a")
	for delay := time.Millisecond; delay < 40*time.Millisecond; delay += 2 * time.Millisecond {
		cmd := n.call("ADD", "a", n.netConf("net", ""))
		var printed bytes.Buffer
		cmd.Stdout = &printed
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(delay) // the moment is what is varied
		cmd.Process.Kill()
		_ = cmd.Wait() // it may have come to its end before
		// What was printed may have been confirmed before the end: then it is the
		// runtime's, which asks for DEL because the plugin died.
		if printed.Len() > 0 {
			n.unplug("a")
		}
		n.until("nothing is left", func() error {
			var ports []api.Port
			if err := n.get(api.PathPorts, "", &ports); err != nil {
				return err
			}
			if len(ports) > 0 {
				return fmt.Errorf("ports %+v", ports)
			}
			// An ADD that was cut short before its record takes the address back last.
			if leases := n.leases(); len(leases) > 0 {
				return fmt.Errorf("leases %v", leases)
			}
			return nil
		})
	}
	n.nothingLeft()
}

// TestBadRequestsLeaveNothing goes through errors that only the whole agent finds.
func TestBadRequestsLeaveNothing(t *testing.T) {
	n := newNode(t)
	n.conf.PodCIDRs = []string{"10.10.0.0/30"} // one Pod
	n.startReady()
	n.namespace("bad")
	for _, c := range []struct {
		what, more string
		code       uint
		words      []string
	}{
		{"outside", `, "runtimeConfig": {"ips": ["192.0.2.1"]}`, cniapi.CodeAddress, []string{"192.0.2.1", "10.10.0.0/30"}},
		{"gateway", `, "runtimeConfig": {"ips": ["10.10.0.1"]}`, cniapi.CodeAddress, []string{"10.10.0.1", "gateway"}},
		{"mac", `, "runtimeConfig": {"mac": "01:00:00:00:00:01"}`, cniapi.CodeConfig, []string{"01:00:00:00:00:01"}},
	} {
		_, err := n.cni("ADD", "bad", c.more)
		wantCode(t, c.what, err, c.code, c.words...)
	}
	n.plug("a", "")
	_, err := n.cni("ADD", "bad", "")
	wantCode(t, "full", err, cniapi.CodeAddress, "10.10.0.0/30", "all 1 addresses")
	var findings []api.Finding
	if err := n.get(api.PathCheck, "", &findings); err != nil || !slices.ContainsFunc(findings, func(f api.Finding) bool {
		return f.Level == api.Fail && strings.Contains(f.What, "10.10.0.0/30")
	}) {
		t.Errorf("check does not tell that the range is full: %+v %v", findings, err)
	}
	// A full range is no reason to call the node unusable.
	if _, err := n.cni("STATUS", "", ""); err != nil {
		t.Errorf("STATUS with a full range: %v", err)
	}
	// Without addresses there is still room.
	if _, err := n.cni("ADD", "bad", `, "ipam": {}`); err != nil {
		t.Errorf("layer 2: %v", err)
	}
	n.unplug("a", "bad")
	n.nothingLeft()
}
