package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
)

// Virtual time after which everything must be as it should. The first is the
// longest back-off (one minute, where Open vSwitch itself refuses a port) and
// some; the second is what two observations of a sweep take on top, or a
// periodic list of ports.
const (
	settleTime = 75 * time.Second
	sweepTime  = 4 * time.Minute
)

// settle ends all faults, lets the runtime do what it owes, waits, and compares
// the world with the model.
func (r *run) settle() {
	n := r.n
	n.log("settle")
	n.peace()
	r.db.over()
	r.of.over()
	r.vs.over()
	n.vs.loseNext(0)
	n.bridge.Away(false)
	n.of.freeze(false)
	n.of.reach(true)
	n.vs.start()
	r.startAgent()
	r.agent.serving.Wait()
	for c := range n.keys {
		r.payOff(c)
	}
	time.Sleep(settleTime)
	if r.slow {
		time.Sleep(sweepTime)
		r.slow = false
	}
	r.compare()
}

// fateOf follows the calls of c since the last Settle.
func (r *run) fateOf(c int) fate {
	f, ok := r.fates[c]
	if !ok {
		f = fate{absent: true}
	}
	return after(f, r.rt.calls[c][r.from[c]:])
}

// payOff repeats a DEL as a kubelet does, until it succeeds.
func (r *run) payOff(c int) {
	if !r.fateOf(c).owed && !r.lost[c] {
		return
	}
	r.lost[c], r.rowless[c] = false, false
	r.n.log("the runtime deletes c%d once more", c)
	for range 5 {
		k := r.rt.begin(c, Del)
		if r.rt.delete(r.agent, c, k, callTimeout) == nil {
			return
		}
	}
	r.n.breach("DEL of c%d does not succeed although nothing is wrong any more", c)
}

// compare holds the rules for a world that has come to rest.
func (r *run) compare() {
	n := r.n
	records := make(map[ifstore.Key]ifstore.Interface)
	for _, record := range r.agent.net.Interfaces() {
		records[record.Key] = record
	}
	rows := make(map[string]podnet.Port)
	for _, row := range n.bridge.Rows() {
		rows[row.Name] = row
	}
	want := make(map[ifstore.Key]uint32) // flows
	var stay []ifstore.Interface
	var left, should []string
	for c, key := range n.keys {
		f := r.fateOf(c)
		record, is := records[key]
		delete(records, key)
		switch {
		case r.dead[c] && is:
			n.breach("c%d died and its interface is still %s", c, record.State)
		case !r.dead[c] && (is && !f.absent || is && f.present || !is && f.absent):
		case !r.dead[c]:
			n.breach("the interface of c%d must be %v; in the store: %t %s", c, f, is, record.State)
		}
		if r.dead[c] && !is {
			r.dead[c], r.rowless[c], r.crossed[c] = false, false, false // as with a DEL
			r.rt.sweptAway(c)
		}
		r.fates[c], r.from[c] = fate{present: is, absent: !is}, len(r.rt.calls[c])
		if !is {
			continue
		}
		should = append(should, "link "+n.name(c), "address of "+key.String())
		row, hasRow := rows[n.name(c)]
		if !r.rowless[c] {
			should = append(should, "port "+n.name(c))
		}
		if number, due := r.due(c, record, row, hasRow); due {
			want[key] = number
		}
		stay = append(stay, record)
		r.told(c, record, want)
	}
	for key := range records {
		n.breach("%s is in the store and nobody asked for it", key)
	}
	if differ := n.of.wrong(want, stay); differ != "" {
		n.breach("%s", differ)
	}
	for name := range rows {
		left = append(left, "port "+name)
	}
	for _, name := range n.linker.Names() {
		left = append(left, "link "+name)
	}
	for _, key := range n.addresses.Leases() {
		left = append(left, "address of "+key)
	}
	slices.Sort(left)
	slices.Sort(should)
	if !slices.Equal(left, should) {
		n.breach("there are %q, should be %q", left, should)
	}
}

// due says on which number the flows of c must stand, if any, and compares the
// record with it.
func (r *run) due(c int, record ifstore.Interface, row podnet.Port, hasRow bool) (number uint32, due bool) {
	n := r.n
	port, wasLive, ok := n.vs.truth(n.name(c))
	cause := ""
	switch {
	case !hasRow:
		cause = "no such port"
	case record.Gen != row.Gen:
		n.breach("c%d has row %s, the record has %s", c, row.Gen, record.Gen)
		return 0, false
	case !ok:
		cause = row.Error
	case n.sched.Readiness == Live && !port.live:
		if wasLive || r.crossed[c] {
			// It may have got its flows while it was live, and keeps them then.
			return port.number, record.State == ifstore.StateReady
		}
		cause = "not live"
	default:
		if record.State != ifstore.StateReady || record.OFPort != port.number {
			n.breach("c%d is %s on OpenFlow port %d (waiting for %q), want ready on %d", c, record.State, record.OFPort, record.Waiting, port.number)
		}
		return port.number, true
	}
	if n.sched.Readiness != Waiting {
		cause = "" // which of two waits is named depends on what was seen first
	}
	if record.State != ifstore.StateWaiting || record.OFPort != 0 || !strings.Contains(record.Waiting, cause) {
		n.breach("c%d is %s on OpenFlow port %d, waiting for %q, want it to wait for %q", c, record.State, record.OFPort, record.Waiting, cause)
	}
	return 0, false
}

// told compares what the Pod of c was told with what is true.
func (r *run) told(c int, record ifstore.Interface, want map[ifstore.Key]uint32) {
	e, life, sure, any := r.events.latest(c)
	_, ready := want[record.Key]
	switch {
	case ready && sure && e.Type == podnet.NetworkNotReady && life == r.agent.inc.id:
		r.n.breach("c%d is ready and its Pod was last told: %s", c, e.Message)
	case !ready && (!any || e.Type != podnet.NetworkNotReady):
		r.n.breach("c%d waits for %q and its Pod was not told (last: %q)", c, record.Waiting, e.Message)
	}
}

// clear deletes everything; nothing may be left.
func (r *run) clear() {
	n := r.n
	for c := range n.keys {
		if r.fates[c].present {
			k := r.rt.begin(c, Del)
			if err := r.rt.delete(r.agent, c, k, callTimeout); err != nil {
				n.breach("DEL of c%d at last: %v", c, err)
			}
			if took := time.Since(k.at); took > 2*time.Second {
				n.breach("DEL of c%d took %v although nothing is wrong", c, took)
			}
		}
	}
	time.Sleep(time.Second)
	r.compare()
	if b, ok := r.agent.backend.(interface{ Waiting() int }); ok && b.Waiting() > 0 {
		n.breach("the readiness backend still waits for %d ports", b.Waiting())
	}
	if records := r.agent.net.Interfaces(); len(records) > 0 {
		n.breach("left in the store: %v", fmt.Sprint(records))
	}
}
