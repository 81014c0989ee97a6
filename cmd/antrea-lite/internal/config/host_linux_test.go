package config

import "strings"

const hostOpenFlow = "unix:/run/openvswitch/br-int.mgmt"

// hostMistakes are those with paths and endpoints.
func hostMistakes(ok string) []mistake {
	return []mistake{
		{"endpoint", ok + "ovsdb: /run/db.sock", []string{"ovsdb", "/run/db.sock", "unix:"}},
		{"endpoint relative", ok + "ovsdb: unix:db.sock", []string{"unix:db.sock"}},
		{"socket", ok + "cniSocket: cni.sock", []string{"cniSocket", "cni.sock"}},
		{"socket long", ok + "cniSocket: /" + strings.Repeat("x", 120), []string{"cniSocket", "107"}},
		{"pipe", ok + `ovsdb: 'npipe:\\.\pipe\x'`, []string{"ovsdb", "unix:"}},
		{"no gateway", ok + "gateway: {name: ''}", []string{"gateway.name"}},
		{"prepareUplink without a tunnel", ok + "datapath: netdev\ntraffic: {prepareUplink: true}", []string{"traffic.prepareUplink", "noEncap", "leave it out"}},
		{"prepareUplink on the kernel datapath", ok + "traffic: {prepareUplink: true, mode: encap}", []string{"traffic.prepareUplink", "system"}},
	}
}
