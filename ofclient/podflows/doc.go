// Package podflows is the default pipeline for Pods: which OpenFlow flows make
// a Pod's port talk, and only as itself, and the Installer that keeps the
// switch equal to them.
//
// docs/pipeline.md draws the pipeline. In one paragraph: the Classifier knows a
// packet by its port; the guards drop what a Pod may not send; ARP and neighbour
// discovery go straight to the owner of the address asked for; IP is tracked, so
// that replies find the way their connection came; Routing and Switching find
// the destination; tables EgressPolicy and IngressPolicy stand empty for an
// embedder; Output strips the access VLAN. What no flow lets through is dropped.
//
// # Policy hook
//
// podnet enforces no NetworkPolicy. An embedder may own the tables
// TableEgressPolicy to TableEgressPolicyLast and TableIngressPolicy to
// TableIngressPolicyLast: its flows there take any priority from 1 to 63999 and
// a cookie without podnet's mark (see OwnedCookie); a packet that may pass goes
// on to AfterEgressPolicy or AfterIngressPolicy. The flows of priority 0 that let
// everything pass belong to podnet and are replayed by it.
package podflows
