// Package windows is the Windows half of podnet: it makes the cable between a
// container and the host out of an endpoint of the Host Network Service (HNS),
// and waits for the port of the host interface that Windows makes only once the
// container has started, after ADD has returned.
//
// Linker keeps the endpoints. It speaks to HNS through the interface HNS alone,
// so that everything here builds and is tested on any system; *HCN
// (hns_windows.go) is its implementation over hcsshim. No call to HNS can be
// cancelled and some are known never to return, so a guard stands around
// whatever implements HNS: it bounds how long a caller waits and how many calls
// are under way, lets a repeated delete join the one that hangs, and cleans up
// after a create that ends when nobody waits for it any more.
//
// Nothing in Link touches the container's network compartment: that exists only
// after the container has started.
package windows
