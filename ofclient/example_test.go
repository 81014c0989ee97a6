package ofclient_test

import (
	"context"
	"fmt"
	"log"

	"github.com/antrea-lite/podnet/ofclient"
	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// A client that keeps one flow on the switch, whatever happens to the session.
func Example() {
	drop := []ofclient.Group{{Name: "default drop", Mods: []ofp.FlowMod{{Command: ofp.FlowAdd, Priority: 1}}}}
	client, err := ofclient.New(ofclient.Config{
		Dial: ofclient.DialUnix("/run/openvswitch/br0.mgmt"),
		Replay: func(ctx context.Context, conn *ofclient.Conn) error {
			return conn.Apply(ctx, drop)[0]
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	go client.Run(ctx)

	ports := client.WatchPorts()
	defer ports.Close()
	for {
		names, err := ports.Next(ctx)
		if err != nil {
			return
		}
		for _, name := range names {
			if port, ok := client.Port(name); ok {
				fmt.Println(name, "has number", port.Number, "and is", port.State)
			} else {
				fmt.Println(name, "is gone")
			}
		}
	}
}
