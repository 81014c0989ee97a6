package podflows

import "github.com/antrea-lite/podnet/ofclient/ofp"

// nodeTracking sends untagged IP through conntrack and commits new connections.
func (f *flows) nodeTracking(gw Gateway) {
	for _, ip := range ipFrames {
		f.add(TableConntrack, 200, ip, end, ofp.CT{Zone: ctZone, Table: TableConntrackState})
		f.trackReplies(ip, gw)
		f.commit(ip, fromPod)
		if gw.OFPort != 0 {
			f.commit(ip, fromGateway, set(ofp.CTMark(markGateway, markGateway)))
		}
	}
}

// trackReplies turns what answers the gateway back to the gateway. An answer
// that conntrack takes for invalid would go to its asker directly, past the host's
// address translation, and be met with a reset; dropped, it is sent again. A
// connection under way when ovs-vswitchd restarts is not harmed: the userspace
// conntrack, which forgets it, takes its next packet for a new one.
func (f *flows) trackReplies(ip ofp.Match, gw Gateway) {
	invalid := ofp.CTInvalid | ofp.CTTracked
	f.drop(TableConntrackState, 200, with(ip, ofp.CTState(invalid, invalid)))
	if gw.OFPort != 0 {
		f.turnReplies(ip, fromPod)
	}
}

// turnReplies marks what class answers to the gateway.
func (f *flows) turnReplies(ip ofp.Match, class uint32) {
	reply := ofp.CTReply | ofp.CTTracked
	f.add(TableConntrackState, 190, with(ip, ofp.CTState(reply, reply), ofp.CTMark(markGateway, markGateway), from(class)),
		TableEgressPolicy, setFact(factReply, factReply))
}

func (f *flows) commit(ip ofp.Match, class uint32, exec ...ofp.Action) {
	isNew := ofp.CTNew | ofp.CTTracked
	f.add(TableCommit, 200, with(ip, ofp.CTState(isNew, isNew), from(class)), TableOutput,
		ofp.CT{Commit: true, Zone: ctZone, Table: ofp.TableNone, Exec: exec})
}

// nodeForwarding routes, switches, floods and delivers.
func (f *flows) nodeForwarding(gw Gateway) {
	f.add(TableSwitching, 150, ofp.Match{groupDst, ofp.VLANTagged()}, TableFlood)
	f.add(TableSwitching, 150, ofp.Match{groupDst, from(fromL2)}, TableFlood)
	// ARP and ND come here as unicast answers; no policy should see them.
	f.add(TableIngressPolicy, neighbourPriority, arpFrames, TableOutput)
	f.add(TableIngressPolicy, neighbourPriority, adverts, TableOutput)

	f.add(TableFlood, 100, nil, end, floodAll()...)
	number := ofp.OutputReg{Src: ofp.Subfield{Field: ofp.RegID(regPort)}, Bits: 32}
	f.add(TableOutput, 200, ofp.Match{ofp.VLANTagged()}, end, ofp.PopVLAN{}, number)
	f.add(TableOutput, 100, nil, end, number)
	if gw.OFPort == 0 {
		return
	}
	f.add(TableClassifier, 200, ofp.Match{ofp.InPort(gw.OFPort), ofp.VLANNone()}, TableDispatch, setFact(fromGateway, fromMask))
	f.add(TableFlood, 200, ofp.Match{from(fromPod), ofp.VLANNone()}, end, append([]ofp.Action{ofp.Output{Port: gw.OFPort}}, floodAll()...)...)
	for _, ip := range ipFrames {
		f.add(TableRouting, 250, with(ip, fact(factReply)), TableIngressPolicy, set(ofp.EthDst(gw.MAC)), setPort(gw.OFPort))
		for _, ttl := range []uint8{0, 1} {
			// Only the host can say "time exceeded".
			f.add(TableRouting, 240, with(ip, fact(factRouted), ofp.IPTTL(ttl)), TableIngressPolicy, setPort(gw.OFPort))
		}
		f.add(TableRouted, 200, ip, TableIngressPolicy, set(ofp.EthSrc(gw.MAC)), ofp.DecTTL{})
	}
	f.add(TableRouting, 100, ofp.Match{fact(factRouted)}, TableIngressPolicy, setPort(gw.OFPort))
	f.add(TableSwitching, 200, ofp.Match{from(fromPod), ofp.VLANNone(), ofp.EthDst(gw.MAC)}, TableIngressPolicy, setPort(gw.OFPort))
}
