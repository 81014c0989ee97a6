package podflows

import "fmt"

// Tables of the pipeline. Packets move to higher numbers only; the gaps leave
// room for tables to come.
const (
	TableClassifier     uint8 = 0   // by port: gateway, Pod, nothing else
	TableScreen         uint8 = 10  // what no Pod may send; ARP and ND aside
	TableNeighbourGuard uint8 = 12  // ARP and ND must speak for the Pod itself
	TableSourceGuard    uint8 = 14  // MAC, IPv4 and IPv6 source must be the Pod's
	TableDispatch       uint8 = 20  // by protocol
	TableNeighbour      uint8 = 24  // ARP and ND to the owner, or answered
	TableNDAnswer       uint8 = 26  // second half of an ND answer (see nodeNeighbour)
	TableConntrack      uint8 = 30  // sends IP through conntrack
	TableConntrackState uint8 = 32  // invalid: drop; reply to the gateway: mark
	TableEgressPolicy   uint8 = 40  // reserved for an embedder, up to TableEgressPolicyLast
	TableRouting        uint8 = 50  // packets for another subnet, by IP
	TableRouted         uint8 = 52  // source MAC and TTL of a routed packet
	TableSwitching      uint8 = 60  // by VLAN and MAC
	TableIngressPolicy  uint8 = 70  // reserved for an embedder, up to TableIngressPolicyLast
	TableCommit         uint8 = 80  // commits new connections
	TableFlood          uint8 = 90  // announcements and VLAN broadcast: starts the chains
	TableFloodChain     uint8 = 92  // one chain of ports per VLAN
	TableOutput         uint8 = 100 // strips the access VLAN and delivers

	TableEgressPolicyLast  uint8 = 49
	TableIngressPolicyLast uint8 = 79
	// AfterEgressPolicy and AfterIngressPolicy are where an embedder's policy
	// flows send what may pass.
	AfterEgressPolicy  = TableRouting
	AfterIngressPolicy = TableCommit
)

// Table describes one table of the pipeline.
type Table struct {
	ID   uint8
	Name string // as in docs/pipeline.md, traces and metrics
	Doc  string // one line
	Miss string // where a packet goes that no other flow matches: "drop", a table's name, or "" when every packet matches
}

// row is a table with where its flow of priority 0 leads.
type row struct {
	id        uint8
	name, doc string
	miss      uint8 // end: drop; id itself: there is none, some flow matches every packet
}

// rows is in the order of the packet's way.
var rows = [...]row{
	{TableClassifier, "Classifier", "knows the sender by its port; tags a VLAN Pod's frames", end},
	{TableScreen, "Screen", "drops DHCP server replies, router advertisements and redirects; parts ARP and ND from the rest", TableSourceGuard},
	{TableNeighbourGuard, "NeighbourGuard", "ARP and ND must speak for the Pod's own addresses and MAC", end},
	{TableSourceGuard, "SourceGuard", "source MAC, IPv4 and IPv6 must be the Pod's own", end},
	{TableDispatch, "Dispatch", "parts ARP and ND, multicast, tracked IP and plain frames", end},
	{TableNeighbour, "Neighbour", "delivers ARP and ND to the owner of the address, or answers with the gateway's MAC", end},
	{TableNDAnswer, "NDAnswer", "second half of a neighbour advertisement made by the switch", end},
	{TableConntrack, "Conntrack", "looks untagged IP up in conntrack", end},
	{TableConntrackState, "ConntrackState", "drops invalid packets; turns replies to what the gateway began back to it", TableEgressPolicy},
	{TableEgressPolicy, "EgressPolicy", "reserved for an embedder's policy", AfterEgressPolicy},
	{TableRouting, "Routing", "what was sent to the gateway's MAC: to the local Pod that owns the address, else to the gateway", TableSwitching},
	{TableRouted, "Routed", "gateway's MAC as source, TTL one less", end},
	{TableSwitching, "Switching", "finds the port by VLAN and destination MAC", end},
	{TableIngressPolicy, "IngressPolicy", "reserved for an embedder's policy", AfterIngressPolicy},
	{TableCommit, "Commit", "commits new connections, those from the gateway with a mark", TableOutput},
	{TableFlood, "Flood", "sends announcements and VLAN broadcast along the chains", TableFlood},
	{TableFloodChain, "FloodChain", "the ports of each VLAN, one looked up after the other", end},
	{TableOutput, "Output", "strips the access VLAN and delivers; never to the port a packet came from", TableOutput},
}

// Tables lists the pipeline's tables in the order of a packet's way.
func Tables() []Table {
	list := make([]Table, len(rows))
	for i, r := range rows {
		list[i] = Table{ID: r.id, Name: r.name, Doc: r.doc}
		switch r.miss {
		case end:
			list[i].Miss = "drop"
		case r.id:
		default:
			list[i].Miss = TableName(r.miss)
		}
	}
	return list
}

// TableName returns the name of a table, or "table N" for one that is not the pipeline's.
func TableName(id uint8) string {
	for _, r := range rows {
		if r.id == id {
			return r.name
		}
	}
	switch {
	case id > TableEgressPolicy && id <= TableEgressPolicyLast:
		return fmt.Sprintf("EgressPolicy+%d", id-TableEgressPolicy)
	case id > TableIngressPolicy && id <= TableIngressPolicyLast:
		return fmt.Sprintf("IngressPolicy+%d", id-TableIngressPolicy)
	}
	return fmt.Sprintf("table %d", id)
}
