package linux

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// rtnl is a route netlink socket of the namespace of the thread that opened
// it. Unlike netlink.Handle it sends several requests in one system call; the
// kernel works on them in order before the call returns. One goroutine uses it.
type rtnl struct {
	fd   int
	port uint32
	seq  uint32
	buf  []byte
}

// replyWait bounds one read. The kernel has answered by the time a send
// returns, so only a lost reply ever waits.
var replyWait = unix.Timeval{Sec: 5}

func dialRTNL() (*rtnl, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open a netlink socket: %w", err)
	}
	c := &rtnl{fd: fd, buf: make([]byte, 32<<10)}
	err = errors.Join(
		unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}),
		unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_CAP_ACK, 1), // acks without an echo of the request
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &replyWait),
	)
	// The kernel's words for an error: since 4.12, and not worth failing for.
	_ = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_EXT_ACK, 1)
	if err == nil {
		var sa unix.Sockaddr
		if sa, err = unix.Getsockname(fd); err == nil {
			c.port = sa.(*unix.SockaddrNetlink).Pid
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("prepare a netlink socket: %w", err)
	}
	return c, nil
}

func (c *rtnl) close() { unix.Close(c.fd) }

// reply is what the kernel answered to one request.
type reply struct {
	err  error    // the kernel's verdict, with its words when it has some
	data [][]byte // bodies of the messages before it
}

// do sends all requests at once and returns one reply each. An error of do
// itself leaves open what the kernel did. The kernel goes on after a request
// that fails.
func (c *rtnl) do(reqs ...*nl.NetlinkRequest) ([]reply, error) {
	var out []byte
	first := c.seq + 1
	for _, r := range reqs {
		c.seq++
		r.Seq, r.Flags = c.seq, r.Flags|unix.NLM_F_ACK
		out = append(out, r.Serialize()...)
		out = append(out, make([]byte, -len(out)&(unix.NLMSG_ALIGNTO-1))...)
	}
	if err := unix.Sendto(c.fd, out, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("netlink send: %w", err)
	}
	replies := make([]reply, len(reqs))
	for left := len(reqs); left > 0; {
		msgs, err := c.receive()
		if err != nil {
			return nil, err
		}
		for _, m := range msgs {
			i := m.Header.Seq - first
			if int(i) >= len(replies) {
				continue // of an earlier exchange that failed half-way
			}
			if m.Header.Type == unix.NLMSG_ERROR {
				replies[i].err = verdict(m)
				left--
				continue
			}
			replies[i].data = append(replies[i].data, m.Data)
		}
	}
	return replies, nil
}

func (c *rtnl) receive() ([]syscall.NetlinkMessage, error) {
	for {
		n, from, err := unix.Recvfrom(c.fd, c.buf, 0)
		switch {
		case err == unix.EINTR:
			continue // a socket with a timeout is not restarted by SA_RESTART
		case err == unix.EAGAIN:
			return nil, fmt.Errorf("netlink: the kernel did not answer within %d s", replyWait.Sec)
		case err != nil:
			return nil, fmt.Errorf("netlink receive: %w", err)
		}
		if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
			continue // another process may send to our port; only the kernel counts
		}
		// The messages point into the buffer they are parsed from.
		msgs, err := syscall.ParseNetlinkMessage(slices.Clone(c.buf[:n]))
		if err != nil {
			return nil, fmt.Errorf("netlink receive: %w", err)
		}
		return slices.DeleteFunc(msgs, func(m syscall.NetlinkMessage) bool { return m.Header.Pid != c.port }), nil
	}
}

// verdict reads an ACK or an error.
func verdict(m syscall.NetlinkMessage) error {
	if len(m.Data) < 4 {
		return fmt.Errorf("netlink: verdict of %d bytes is cut short", len(m.Data))
	}
	code := int32(nl.NativeEndian().Uint32(m.Data))
	if code == 0 {
		return nil
	}
	errno := syscall.Errno(-code)
	if m.Header.Flags&unix.NLM_F_ACK_TLVS == 0 {
		return errno
	}
	rest := m.Data[4:]
	rest = rest[min(len(rest), unix.NLMSG_HDRLEN):] // NETLINK_CAP_ACK: only the request's header is repeated
	words := ""
	_ = eachAttr(rest, func(kind uint16, v []byte) { // cut short: the number is enough
		if kind == nl.NLMSGERR_ATTR_MSG {
			words = text(v)
		}
	})
	if words == "" {
		return errno
	}
	return fmt.Errorf("%w (%s)", errno, words)
}
