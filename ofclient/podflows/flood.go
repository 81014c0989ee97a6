package podflows

import (
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// Flooding without shared state. A group or an action list that names every
// port would have to be rewritten by every ADD and DEL, and ADDs run at the same
// time. Instead the ports of a VLAN form chains through one table:
//
//   - a port's chain is the lower four bits of its number, its place in the
//     chain the rest plus one;
//   - register 5 holds the chain and the place reached so far, 0 at the start;
//   - a port's flows match its chain and every place before its own, and have
//     the higher priority the smaller their place. So a lookup finds the first
//     port after the place reached. The flow outputs, moves the register to its
//     own place, and looks the table up again.
//
// "Every place before mine" as masked matches takes one flow for every bit set
// in the place. OVS allows 64 lookups of one table within another, so a chain has
// 62 ports at most and a VLAN about 990.
const (
	floodChains      = 16
	floodPlaceBits   = 12
	floodPlaceMask   = 1<<floodPlaceBits - 1
	floodChainMask   = (floodChains - 1) << floodPlaceBits
	floodTopPriority = 0x2000
)

func floodPlace(port uint32) (chain, place uint32) {
	return port % floodChains << floodPlaceBits, port/floodChains + 1
}

// addFloodLink puts a port into its chain.
func (f *flows) addFloodLink(port uint32, vlan uint16) {
	chain, place := floodPlace(port)
	deliver := []ofp.Action{ofp.Output{Port: port}}
	if vlan != 0 {
		deliver = []ofp.Action{ofp.PopVLAN{}, ofp.Output{Port: port}, ofp.PushVLAN{EtherType: ofp.EtherType8021Q}, set(ofp.VLANVID(vlan))}
	}
	deliver = append(deliver, set(ofp.Reg(regFlood, chain|place, ^uint32(0))), ofp.Resubmit{Table: TableFloodChain})
	for bit := range uint32(floodPlaceBits) {
		if place>>bit&1 == 0 {
			continue
		}
		// Smaller than place: equal above this bit, 0 here, anything below.
		value := place >> (bit + 1) << (bit + 1)
		mask := uint32(floodPlaceMask) >> bit << bit
		f.add(TableFloodChain, uint16(floodTopPriority-place), ofp.Match{onVLAN(vlan), ofp.Reg(regFlood, chain|value, floodChainMask|mask)}, end, deliver...)
	}
}

// floodAll starts every chain.
func floodAll() []ofp.Action {
	var acts []ofp.Action
	for chain := range uint32(floodChains) {
		acts = append(acts, set(ofp.Reg(regFlood, chain<<floodPlaceBits, ^uint32(0))), ofp.Resubmit{Table: TableFloodChain})
	}
	return acts
}
