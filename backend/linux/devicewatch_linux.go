package linux

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// watchBuffer holds the kernel's messages while nobody reads: one is about 1.5 kB.
const watchBuffer = 4 << 20

// DeviceWatch tells which network interfaces came, went, were renamed or went down in the
// namespace of the thread that calls Next first. It implements async.Watch. The
// zero value is ready; it is for one goroutine.
type DeviceWatch struct {
	file  *os.File
	raw   syscall.RawConn
	known map[int]deviceState // by index, as told
	buf   []byte
}

// deviceState is what the watch tells of a change of.
type deviceState struct {
	name string
	up   bool
}

// news reports whether now tells what was did not. Going up is no news: whoever
// waits for that waits for OpenFlow's LIVE.
func (now deviceState) news(was deviceState) bool {
	return now.name != was.name || was.up && !now.up
}

// Next waits for names; the first call returns all there are. When the kernel
// had to drop messages, everything is listed and what differs is returned. Ended
// by ctx, the watch has closed its socket; the next call begins anew.
func (w *DeviceWatch) Next(ctx context.Context) ([]string, error) {
	names, err := w.next(ctx)
	if err != nil {
		w.close()
	}
	return names, err
}

func (w *DeviceWatch) next(ctx context.Context) ([]string, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if w.file == nil {
		if err := w.open(); err != nil {
			return nil, err
		}
		return w.compare(ctx) // subscribed first, listed then: nothing comes between
	}
	file := w.file // it may be another one by the time at which ctx ends
	stop := context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		messages, err := w.receive()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, os.ErrDeadlineExceeded):
			// Of an earlier ctx, which ended as its call was returning. Should this
			// one end just now, its deadline is what was taken away.
			_ = file.SetReadDeadline(time.Time{})
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		case errors.Is(err, unix.ENOBUFS):
			if names, err := w.compare(ctx); err != nil || len(names) > 0 {
				return names, err
			}
			continue
		case err != nil:
			return nil, fmt.Errorf("watch network interfaces: %w", err)
		}
		changed := map[string]struct{}{}
		for _, m := range messages {
			w.apply(m, changed)
		}
		if len(changed) > 0 {
			return slices.Sorted(maps.Keys(changed)), nil
		}
	}
}

func (w *DeviceWatch) open() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("watch network interfaces: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, watchBuffer); err != nil {
		// Without the capability the system's limit stands; ENOBUFS is provided for.
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, watchBuffer)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK}); err != nil {
		unix.Close(fd)
		return fmt.Errorf("watch network interfaces: %w", err)
	}
	w.file = os.NewFile(uintptr(fd), "rtnetlink")
	if w.raw, err = w.file.SyscallConn(); err != nil {
		return fmt.Errorf("watch network interfaces: %w", err)
	}
	w.known, w.buf = map[int]deviceState{}, make([]byte, 64<<10)
	return nil
}

func (w *DeviceWatch) close() {
	if w.file != nil {
		w.file.Close()
		w.file = nil
	}
}

// receive waits for one packet of messages.
func (w *DeviceWatch) receive() (messages []syscall.NetlinkMessage, err error) {
	var n int
	var from unix.Sockaddr
	readErr := w.raw.Read(func(fd uintptr) bool {
		for {
			n, from, err = unix.Recvfrom(int(fd), w.buf, 0)
			if !errors.Is(err, unix.EINTR) {
				return !errors.Is(err, unix.EAGAIN)
			}
		}
	})
	if readErr != nil {
		return nil, readErr
	}
	if err != nil {
		return nil, err
	}
	if sa, ok := from.(*unix.SockaddrNetlink); !ok || sa.Pid != 0 {
		return nil, nil // only the kernel counts
	}
	return syscall.ParseNetlinkMessage(slices.Clone(w.buf[:n]))
}

// apply enters one message and adds the names whose presence it changes.
func (w *DeviceWatch) apply(m syscall.NetlinkMessage, changed map[string]struct{}) {
	if len(m.Data) < unix.SizeofIfInfomsg || nl.DeserializeIfInfomsg(m.Data).Family != unix.AF_UNSPEC {
		return // bridges tell of their ports in the same group
	}
	link, err := parseLink(m.Data)
	if err != nil {
		return // a later one, or the next comparison, says it again
	}
	old, was := w.known[link.index]
	switch m.Header.Type {
	case unix.RTM_NEWLINK:
		now := deviceState{link.name, link.up}
		w.known[link.index] = now
		if !now.news(old) {
			return
		}
		changed[now.name] = struct{}{}
	case unix.RTM_DELLINK:
		if !was {
			return
		}
		delete(w.known, link.index)
	default:
		return
	}
	if was {
		changed[old.name] = struct{}{}
	}
}

// compare lists everything and returns the names that differ from what was told.
func (w *DeviceWatch) compare(ctx context.Context) ([]string, error) {
	now := map[int]deviceState{}
	err := listing(ctx, func(h *netlink.Handle) error {
		clear(now)
		links, err := h.LinkList()
		for _, l := range links {
			now[l.Attrs().Index] = deviceState{l.Attrs().Name, l.Attrs().Flags&net.FlagUp != 0}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	changed := map[string]struct{}{}
	for index, state := range now {
		if state.news(w.known[index]) {
			changed[state.name] = struct{}{}
		}
	}
	for index, state := range w.known {
		if now[index].name != state.name {
			changed[state.name] = struct{}{}
		}
	}
	w.known = now
	return slices.Sorted(maps.Keys(changed)), nil
}
