// Package ofp encodes and decodes the OpenFlow 1.5 messages that a node agent
// exchanges with Open vSwitch. It does no I/O, keeps no state and logs nothing.
//
// Append writes one whole frame, Decode reads one. A stream reader calls
// ParseHeader on the first HeaderLen bytes, reads Header.Length bytes in all
// and hands them to Decode. An error of ParseHeader means that the stream lost
// its framing and must be closed; an error of Decode is about that one frame,
// and the next frame can still be read.
//
// Decode copies whatever it keeps, so the caller may reuse its buffer. The
// memory it allocates is bounded by a small multiple of the frame's size.
// Message types that the package does not know come back as *Unknown, actions
// as RawAction and instructions as RawInstruction: nothing that a switch may
// send in good faith is an error.
//
// Where OpenFlow 1.5 leaves a choice the package does what Open vSwitch 3.1
// does: its header files, ovs-fields(7) and ovs-actions(7) are the source of
// the numbers.
package ofp
