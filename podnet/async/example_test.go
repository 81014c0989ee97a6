package async_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// portEvents feeds podnet from another OpenFlow library. Its PortStatus
// handler calls heard with the name in the port description; after every
// reconnect, and for every port of the list it then asks for, it does the same.
type portEvents struct {
	more  chan struct{} // one token: there are names
	mu    sync.Mutex
	names map[string]bool
}

// heard never blocks, also while nobody reads yet: that would hold up the
// connection. A name that waits is held once.
func (e *portEvents) heard(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names[name] = true
	select {
	case e.more <- struct{}{}:
	default:
	}
}

func (e *portEvents) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := slices.Collect(maps.Keys(e.names))
	clear(e.names)
	return names
}

// Next implements async.Watch.
func (e *portEvents) Next(ctx context.Context) ([]string, error) {
	for {
		if names := e.take(); len(names) > 0 {
			return names, nil
		}
		select {
		case <-e.more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// printingSink stands for *podnet.Network.
type printingSink struct{ done context.CancelFunc }

func (s printingSink) Sync(_ context.Context, keys []podnet.PortKey) []error {
	for _, k := range keys {
		fmt.Println("make the flows of", k.Name, "equal to its latest state")
	}
	s.done()
	return make([]error, len(keys))
}

func (printingSink) Late(context.Context, podnet.PortKey, error) {}

// An embedder whose OpenFlow session is another library's (libOpenflow, ofnet,
// a vendor's) passes the names of ports on; nothing else of that library
// reaches podnet.
func ExampleWatch() {
	events := &portEvents{more: make(chan struct{}, 1), names: map[string]bool{}}
	readiness, err := async.New(async.Config{Watches: []async.Watch{events}})
	if err != nil {
		panic(err)
	}
	events.heard("web-0")

	ctx, cancel := context.WithCancel(context.Background())
	if err := readiness.Run(ctx, printingSink{done: cancel}); err != nil {
		panic(err)
	}
	// Output:
	// make the flows of web-0 equal to its latest state
}
