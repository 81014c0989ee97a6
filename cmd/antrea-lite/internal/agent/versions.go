package agent

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/antrea-lite/podnet/vswitch"
)

// Oldest versions that are supported. Open vSwitch 2.13 has everything the
// pipeline uses: OpenFlow 1.5 bundles without being asked (2.8), the neighbour
// discovery option fields (2.11), ct_mark on both datapaths. Deleting conntrack
// entries by OpenFlow needs 3.1 and is left out before. Linux 4.18 has the kernel
// datapath with conntrack and creates a veth's peer in its namespace at once.
const (
	MinOVS      = "2.13.0"
	MinOVSDB    = "8.2.0" // the schema of Open vSwitch 2.13
	MinKernel   = "4.18.0"
	GoodCTFlush = "3.1.0"
)

// OVSTooOld says whether Open vSwitch is too old; its version may be unknown,
// then the database schema tells.
func OVSTooOld(info vswitch.Info) error {
	if info.OVSVersion != "" {
		if Older(info.OVSVersion, MinOVS) {
			return fmt.Errorf("version %s of Open vSwitch is too old: update it to %s or later", info.OVSVersion, MinOVS)
		}
		return nil
	}
	if info.DBSchema != "" && Older(info.DBSchema, MinOVSDB) {
		return fmt.Errorf("the Open vSwitch database has schema %s, which is too old: update Open vSwitch to %s or later", info.DBSchema, MinOVS)
	}
	return nil
}

// Older compares dotted versions by their leading numbers; what does not parse counts as 0.
func Older(version, than string) bool {
	a, b := numbers(version), numbers(than)
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

func numbers(version string) (out [3]int) {
	for i, part := range strings.SplitN(version, ".", 3) {
		end := strings.IndexFunc(part, func(r rune) bool { return r < '0' || r > '9' })
		if end >= 0 {
			part = part[:end]
		}
		out[i], _ = strconv.Atoi(part)
	}
	return out
}
