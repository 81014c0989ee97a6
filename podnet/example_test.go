package podnet_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/antrea-lite/podnet/ifstore"
	"github.com/antrea-lite/podnet/podnet"
	"github.com/antrea-lite/podnet/podnet/podnettest"
)

// countingFlows is a part of the embedder's own: it counts what the flows it
// wraps are asked to install.
type countingFlows struct {
	podnet.Flows
	mu        sync.Mutex
	installed int
}

func (f *countingFlows) Install(ctx context.Context, ifaces []ifstore.Interface) []error {
	f.mu.Lock()
	f.installed += len(ifaces)
	f.mu.Unlock()
	return f.Flows.Install(ctx, ifaces)
}

// A Network from parts, one of them the embedder's own. The parts here live in
// memory; on a node they are *linux.Linker, *linux.Readiness, *vswitch.Client,
// *podflows.Installer and an address manager.
func ExampleNetwork() {
	parts := podnettest.NewWorld()
	flows := &countingFlows{Flows: parts.Flows}
	network, err := podnet.New(podnet.Config{
		Linker:    parts.Linker,
		Readiness: podnettest.NewWaitingReadiness(parts.Bridge),
		Bridge:    parts.Bridge,
		Flows:     flows,
		Addresses: parts.Addresses,
		Events:    podnet.NewEventQueue(0), // a goroutine of the embedder's takes them with Next
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- network.Run(ctx) }()

	request := podnet.Request{
		Key:   ifstore.Key{ContainerID: "0f3a9c", IfName: "eth0"},
		Pod:   ifstore.Pod{Namespace: "default", Name: "web-0"},
		NetNS: "/run/netns/web-0",
	}
	iface, err := network.Add(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(iface.Pod, iface.State, "on OpenFlow port", iface.OFPort, "with", iface.IPs())

	if err := network.Check(ctx, request.Key); err != nil {
		log.Fatal(err)
	}
	if err := network.Delete(ctx, request.Key); err != nil {
		log.Fatal(err)
	}
	fmt.Println("installed:", flows.installed, "left:", len(network.Interfaces()))

	stop()
	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output:
	// default/web-0 ready on OpenFlow port 1 with [10.10.0.2]
	// installed: 1 left: 0
}

// Code that acts on Pods follows them with a list and then changes.
func ExampleNetwork_Updates() {
	parts := podnettest.NewWorld()
	network, err := podnet.New(parts.Config())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	updates := network.Updates()
	defer updates.Close()

	show := func() {
		batch, err := updates.Next(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(batch), "updates")
		for _, u := range batch {
			fmt.Println(u.Interface.Pod, "removed:", u.Removed)
		}
	}
	show() // the list, empty
	if _, err := network.Add(ctx, podnettest.NewRequest("c1")); err != nil {
		log.Fatal(err)
	}
	show()
	if err := network.Delete(ctx, podnettest.NewRequest("c1").Key); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// 0 updates
	// 1 updates
	// default/pod-c1 removed: false
	// 1 updates
	// default/pod-c1 removed: true
}
