package nodenet

import "testing"

func TestPodMTU(t *testing.T) {
	for _, test := range []struct {
		name           string
		tunnel         string
		outer6, pod6   bool
		uplink, want   int
		wantNothingFit bool
	}{
		{name: "routed", uplink: 1500, want: 1500},
		{name: "routed, jumbo", uplink: 9000, want: 9000},
		{name: "geneve in IPv4", tunnel: "geneve", uplink: 1500, want: 1450},
		{name: "geneve in IPv6", tunnel: "geneve", outer6: true, uplink: 1500, want: 1430},
		{name: "vxlan in IPv4", tunnel: "vxlan", uplink: 1500, want: 1450},
		{name: "vxlan in IPv6", tunnel: "vxlan", outer6: true, uplink: 1500, want: 1430},
		{name: "loopback", tunnel: "geneve", uplink: 65536, want: 65485},
		{name: "IPv6 Pods on a small link", tunnel: "geneve", pod6: true, uplink: 1320, wantNothingFit: true},
		{name: "IPv4 Pods on a small link", tunnel: "geneve", uplink: 1320, want: 1270},
		{name: "hardly a link", uplink: 296, wantNothingFit: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := PodMTU(test.uplink, Overhead(test.tunnel, test.outer6), test.pod6)
			if got != test.want || (err != nil) != test.wantNothingFit {
				t.Errorf("%d, %v; want %d", got, err, test.want)
			}
		})
	}
}
