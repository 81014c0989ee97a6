package config

import (
	"strings"
	"testing"

	"github.com/antrea-lite/podnet/internal/winpipe"
)

const hostOpenFlow = `npipe:C:\openvswitch\var\run\openvswitch\br-int.mgmt`

// hostMistakes are those with paths and endpoints.
func hostMistakes(ok string) []mistake {
	return []mistake{
		{"unix endpoint", ok + "ovsdb: unix:/run/db.sock", []string{"ovsdb", "unix:/run/db.sock", "npipe:"}},
		{"pipe without name", ok + `ovsdb: 'npipe:\\.\pipe\'`, []string{"ovsdb", "npipe:"}},
		{"relative pipe", ok + `openflow: 'npipe:br-int.mgmt'`, []string{"openflow", "br-int.mgmt"}},
		{"socket", ok + `cniSocket: 'C:\cni.sock'`, []string{"cniSocket", "cni.sock", "pipe"}},
		{"socket below", ok + `cniSocket: '\\.\pipe\a\b'`, []string{"cniSocket", "pipe"}},
		{"socket long", ok + `cniSocket: '\\.\pipe\` + strings.Repeat("x", 260) + "'", []string{"cniSocket", "256"}},
		{"Linux path", ok + "stateDir: /run/antrea-lite", []string{"stateDir", "/run/antrea-lite"}},
		{"addresses of no gateway", ok + "gateway: {addresses: [10.10.0.1]}", []string{"gateway.name", "10.10.0.1"}},
		{"the uplink is HNS's", ok + "traffic: {prepareUplink: true}", []string{"traffic.prepareUplink", "prepare-node"}},
	}
}

// TestDefaultPipesAreOpenVSwitchs: both ways to name a pipe lead to the name that
// Open vSwitch for Windows makes of its run directory.
func TestDefaultPipesAreOpenVSwitchs(t *testing.T) {
	c := Default()
	for endpoint, want := range map[string]string{
		c.OVSDB:              `\\.\pipe\C:openvswitchvarrunopenvswitchdb.sock`,
		c.OpenFlowEndpoint(): `\\.\pipe\C:openvswitchvarrunopenvswitchbr-int.mgmt`,
	} {
		_, path, _ := strings.Cut(endpoint, ":")
		if got, err := winpipe.Name(path); err != nil || got != want {
			t.Errorf("%s is %s, %v", endpoint, got, err)
		}
	}
}
