package k8s

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/antrea-lite/podnet/e2e/lab"
)

const (
	// pingEvery is fine enough to tell how long an outage was.
	pingEvery = 10 * time.Millisecond
	// streamSize bytes every streamEvery go by TCP. It is little, because a socket of the
	// userspace datapath holds 200 kB and counts 768 for a small packet: what a busy
	// machine keeps waiting for half a second must fit in there.
	streamEvery = 50 * time.Millisecond
	streamSize  = 1000
)

// way is one direction between two endpoints.
type way struct {
	name     string
	from, to lab.Endpoint
}

// ways are those from one Pod to another, one for each family.
func ways(name string, from, to pod) []way {
	var all []way
	for i, at := range from.at() {
		all = append(all, way{name + " " + family(at.Addr), at, to.at()[i]})
	}
	return all
}

// seen is what the traffic of one way met.
type seen struct {
	way
	ping lab.PingReport
	tcp  lab.Transfer
	err  error
}

// load keeps a ping stream and a TCP connection going on every way until the
// returned function is called.
func (w *world) load(all ...way) (stop func() []seen) {
	w.t.Helper()
	for _, way := range all {
		// Packets that wait for a neighbour's address would look like an outage.
		w.reach(way)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.t.Cleanup(cancel)
	report := make([]seen, len(all))
	var running sync.WaitGroup
	for i, way := range all {
		s := &report[i]
		s.way = way
		var ping, tcp error
		var both sync.WaitGroup
		both.Go(func() { s.ping, ping = lab.PingStream(ctx, way.from.NS, way.from.Addr, way.to.Addr, pingEvery) })
		both.Go(func() { s.tcp, tcp = lab.StreamTCP(ctx, way.from, way.to, streamSize, streamEvery) })
		running.Go(func() {
			both.Wait()
			s.err = errors.Join(ping, tcp)
		})
	}
	return func() []seen {
		cancel()
		running.Wait()
		return report
	}
}

// lossless ends a load, demands that not one packet of it was lost, and tells how much it was.
func (w *world) lossless(stop func() []seen) {
	w.t.Helper()
	for _, s := range stop() {
		w.t.Logf("%s: %d pings, %d lost, longest gap %s; %.1f MB by TCP", s.name, s.ping.Sent, s.ping.Lost,
			s.ping.LongestGap.Round(time.Millisecond), float64(s.tcp.Bytes)/1e6)
		if s.err != nil {
			w.t.Errorf("%s: %v", s.name, s.err)
		}
		if s.ping.Lost > 0 {
			w.t.Errorf("%s: %d of %d pings were lost", s.name, s.ping.Lost, s.ping.Sent)
		}
	}
}

// reach waits until an echo request is answered: the first one of a new port may meet
// what the datapath remembers of before its flows (docs/testing.md).
func (w *world) reach(way way) {
	w.t.Helper()
	w.until(way.name+": the Pods reach each other", func() error {
		_, err := lab.Ping(way.from.NS, way.from.Addr, way.to.Addr, 56, time.Second)
		return err
	})
}
