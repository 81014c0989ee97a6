package e2e

import (
	"github.com/vishvananda/netlink"
)

// addStranger makes an interface that is none of ours and returns its removal,
// which fails the test when somebody else removed it.
func (n *node) addStranger(name string) (remove func()) {
	n.t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	link := &netlink.Veth{LinkAttrs: attrs, PeerName: "strangers-peer"}
	if err := netlink.LinkAdd(link); err != nil {
		n.t.Fatalf("add %s: %v", name, err)
	}
	return func() {
		if err := netlink.LinkDel(link); err != nil {
			n.t.Errorf("remove %s: %v", name, err)
		}
	}
}

// deleteLink removes an interface behind the agent's back.
func (n *node) deleteLink(name string) {
	n.t.Helper()
	link, err := netlink.LinkByName(name)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if err != nil {
		n.t.Fatalf("delete %s: %v", name, err)
	}
}
