// Package ofclient is an OpenFlow 1.5 client for one Open vSwitch bridge. It
// keeps a session for as long as its Run lives, whatever the switch does:
// it dials again for ever, and every new session is brought to a known state
// (subscribed, ports listed, flows replayed) before anyone may use it.
//
// # Changing flows
//
// Every flow change goes in a bundle (OpenFlow 1.5.1, section 7.3.9). A Group
// of changes is applied whole or not at all, and callers that wait at the same
// moment share one bundle. The outcome of Apply is one of three:
//
//   - nil: the switch committed the change;
//   - an error that wraps podnet.ErrOutcomeUnknown: the session ended, or the
//     caller left, after the commit was sent. The next session's replay, or a
//     repeated Apply, repairs it;
//   - any other error: nothing was applied. *FlowError names the flow at fault.
//
// # Watching ports
//
// PORT_STATUS messages are lost while nobody is connected, so they are never
// trusted alone: each session lists the ports first, a periodic list repairs
// what was lost, and a PortWatch tells names rather than events: whoever reads
// it looks up the latest state.
package ofclient
