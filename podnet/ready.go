package podnet

import "context"

// PortKey names one life of one OVS port. Gen is the UUID of the OVSDB
// Interface row that an Add made; a later port of the same Name has another
// Gen. A key with an empty Gen stands for whatever life the name has now.
type PortKey struct {
	Name string
	Gen  string
}

// PortReadiness learns the OpenFlow number of a port. The Linux backend
// answers in Begin; an asynchronous one answers later through the sink.
type PortReadiness interface {
	// Begin answers with the number (ok), or promises to call the sink (not
	// ok, no error). An error fails the Add. Begin may be called before Run.
	Begin(ctx context.Context, key PortKey) (ofport uint32, ok bool, err error)
	// Cancel withdraws the promise. It never waits for a sink call that is
	// under way; a late call is harmless because it carries the Gen.
	Cancel(key PortKey)
	// Run delivers to sink until ctx ends. It reports number changes of every
	// port, whether Begin was called for it or not.
	Run(ctx context.Context, sink PortSink) error
}

// PortSink receives what a PortReadiness learns. *Network implements it. Both
// methods are level-triggered and may be called concurrently.
type PortSink interface {
	// Sync makes the flows of these ports equal to the latest state. One
	// result per key; an error asks for a retry.
	Sync(ctx context.Context, keys []PortKey) []error
	// Late tells that a port is still not there; cause says which wait failed.
	Late(ctx context.Context, key PortKey, cause error)
}

// Resumer is implemented by a PortReadiness that has work to take up again
// after a restart: what Begin promised in an earlier process. Reconcile calls
// it with every port that never had flows. It never waits.
type Resumer interface {
	Resume(keys []PortKey)
}
