package async_test

import (
	"context"
	"fmt"

	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/async"
)

// portEvents feeds podnet from another OpenFlow library. Its PortStatus
// handler calls heard with the name in the port description; after every
// reconnect, and for every port of the list it then asks for, it does the same.
type portEvents chan string

func (e portEvents) heard(name string) { e <- name }

// Next implements async.Watch.
func (e portEvents) Next(ctx context.Context) ([]string, error) {
	select {
	case name := <-e:
		return []string{name}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
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
	events := make(portEvents, 16)
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
