package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Without its CNI configuration file a node takes no Pods; somebody who removes it
// while the agent runs gets it back.
func TestConfigurationFileComesBack(t *testing.T) {
	n := newNode(t)
	n.conf.CNIConfDir = filepath.Join(n.dir, "net.d")
	path := filepath.Join(n.conf.CNIConfDir, confName)
	n.startReady()
	var before []byte
	n.until("the file is there", func() (err error) { before, err = os.ReadFile(path); return err })
	if err := os.RemoveAll(n.conf.CNIConfDir); err != nil {
		t.Fatal(err)
	}
	n.until("the file is there again", func() error {
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
			return fmt.Errorf("%v %s", err, now)
		}
		return nil
	})
	// What somebody changed in it is theirs until the next start.
	edited := append(before, '\n')
	if err := os.WriteFile(path, edited, 0o644); err != nil {
		t.Fatal(err)
	}
	conf := &cniConf{dir: n.conf.CNIConfDir}
	if err := conf.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, edited) {
		t.Errorf("%v %s", err, now)
	}
}

// An agent without encap mode removes the tunnel of one before it that had it, and no other.
func TestTunnelGoesWithEncapMode(t *testing.T) {
	n := newNode(t)
	n.startReady()
	n.halt()
	for _, port := range []struct{ name, owner string }{{tunnelName, tunnelOwner}, {"tun-mine", "me"}} {
		if _, err := n.sw.Vsctl("add-port", n.conf.Bridge, port.name, "--", "set", "interface", port.name, "type=geneve", "options:remote_ip=flow",
			"--", "set", "port", port.name, "external_ids:podnet-owner="+port.owner); err != nil {
			t.Fatal(err)
		}
	}
	n.startReady()
	if ports, err := n.sw.Vsctl("list-ports", n.conf.Bridge); err != nil || ports != n.conf.Gateway.Name+"\ntun-mine" {
		t.Errorf("ports %q %v", ports, err)
	}
}
