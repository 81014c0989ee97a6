package ofclient_test

import (
	"context"
	"encoding/binary"
	"net"

	"github.com/antrea-lite/podnet/ofclient/ofp"
)

type dialer = func(context.Context) (net.Conn, error)

// refusing makes the switch refuse a message type: the peer sees a type that it does not know.
func refusing(dial dialer, typ ofp.Type) dialer {
	return rewriting(dial, func(frame []byte) {
		if ofp.Type(frame[1]) == typ {
			frame[1] = 99
		}
	})
}

// holding delays the first message that is wanted, and all after it, until held is closed.
func holding(dial dialer, want func(ofp.Message) bool, held <-chan struct{}) dialer {
	return rewriting(dial, func(frame []byte) {
		if _, m, err := ofp.Decode(frame); err == nil && want(m) {
			<-held
		}
	})
}

// rewriting shows every frame that the client writes to a function first.
func rewriting(dial dialer, edit func(frame []byte)) dialer {
	return func(ctx context.Context) (net.Conn, error) {
		nc, err := dial(ctx)
		return &editedConn{nc, edit}, err
	}
}

type editedConn struct {
	net.Conn
	edit func([]byte)
}

// Write relies on the client's habit of writing whole frames.
func (c *editedConn) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := int(binary.BigEndian.Uint16(rest[2:]))
		c.edit(rest[:n])
		rest = rest[n:]
	}
	return c.Conn.Write(b)
}
