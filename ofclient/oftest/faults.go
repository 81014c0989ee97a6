package oftest

import (
	"time"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

// Faults are the ways in which a Switch can misbehave; the zero value is a
// healthy switch. Functions are called one at a time.
type Faults struct {
	RefuseDial       error         // Dial fails with it; a socket is accepted and closed at once
	NoHello          bool          // nothing is ever sent
	Versions         []uint8       // in the hello; default 1.5 alone
	RefuseVersion    bool          // the hello is answered with an error and a closed connection, as OVS does
	SilentAfterHello bool          // everything is read, nothing is answered
	ReplyDelay       time.Duration // before each message is handled
	SplitWrites      int           // at most so many bytes in one write; 0: whole frames
	RefuseSetAsync   bool
	PortsPerPart     int    // of a port list; 0: 100
	BetweenParts     func() // runs between two parts of a list
	DropPortStatus   int    // how many of the next PORT_STATUS messages are lost

	RefuseOpen  *ofp.Error                                           // every bundle open is refused
	FailAdd     func(ofp.FlowMod) *ofp.Error                         // an add to a bundle, or a flow change outside one, fails with what it returns
	FailCommit  func(ofp.FlowMod) *ofp.Error                         // a commit fails because of this flow change: error with its xid, then MSG_FAILED
	HideFault   bool                                                 // FailCommit's error is not sent, MSG_FAILED alone is
	DropCommits bool                                                 // bundles are committed, the reply is withheld
	LieCommits  bool                                                 // bundles are answered well and dropped
	OnMessage   func(session int, xid uint32, m ofp.Message) Verdict // sees every message but echo before it is handled
}

// Verdict is what OnMessage decides about a message.
type Verdict int

const (
	Pass       Verdict = iota // handle it
	Drop                      // do not handle it
	Close                     // close the connection without handling it
	CloseAfter                // handle it and close the connection before its answer is sent
)
