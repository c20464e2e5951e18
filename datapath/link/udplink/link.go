// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// Link is a link over UDP sockets. It implements link.Link.
type Link struct {
	receiver
	sender
	poll    int               // epoll instance with the sockets
	sockets map[int32]*Socket // by descriptor
	pending []*Socket         // sockets that may have packets
	recent  *Socket           // the last socket that had packets; nil if it was removed
	hot     bool              // recent had packets at the last poll
	calls   int               // number of calls of Receive
	room    int               // receive buffer of a socket, in bytes
	events  [16]unix.EpollEvent
	losses  losses
	past    atomic.Uint64 // packets dropped by sockets that were removed
	closed  bool
}

// losses counts received packets, or rows of packets, that the link has dropped.
type losses struct{ truncated, control atomic.Uint64 }

// Config configures a Link.
type Config struct {
	Index int // index of the interface
}

// Open opens a link without receiving sockets, in the network namespace of the calling thread.
func Open(c Config) (*Link, error) {
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	l := &Link{poll: poll, sockets: map[int32]*Socket{}}
	l.index = uint32(c.Index)
	if l.ports, err = openPorts(); err != nil {
		return nil, errors.Join(err, unix.Close(poll))
	}
	l.receiver.allocate()
	l.sender.allocate()
	return l, nil
}

// SourcePorts returns the ports of the sending sockets. Committed frames must have one of these source ports.
func (l *Link) SourcePorts() wire.SourcePorts { return l.ports.numbers }

// Add adds a receiving socket, which the link then owns.
func (l *Link) Add(s *Socket) error {
	if l.closed {
		return fmt.Errorf("UDP link: %w", unix.EBADF)
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.fd)}
	if err := unix.EpollCtl(l.poll, unix.EPOLL_CTL_ADD, s.fd, &event); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	l.sockets[event.Fd], s.before = s, s.drops()
	l.room, _ = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF) // 0 if unknown
	return nil
}

// Remove removes a socket, which the caller then owns again. It returns false if the link was closed before, which has
// also closed the socket.
func (l *Link) Remove(s *Socket) bool {
	if l.sockets[int32(s.fd)] != s {
		return false
	}
	_ = unix.EpollCtl(l.poll, unix.EPOLL_CTL_DEL, s.fd, nil)
	l.past.Add(s.lost())
	delete(l.sockets, int32(s.fd))
	l.pending = slices.DeleteFunc(l.pending, func(one *Socket) bool { return one == s })
	if l.recent == s {
		l.recent, l.hot = nil, false
	}
	return true
}

// askEvery is the number of calls of Receive after which all sockets are polled even if one has packets, so that a busy
// socket does not starve the others.
const askEvery = 8

// Receive implements link.Link. Sockets with packets take turns. The socket that last had packets is tried before all
// sockets are polled, which costs another system call. Receive returns 0 only if no socket has packets: otherwise a
// caller that was woken by the descriptor would not be woken again.
func (l *Link) Receive() int {
	if l.calls++; l.calls%askEvery == 0 {
		l.ask()
	}
	if len(l.pending) == 0 && l.hot {
		l.pending = append(l.pending, l.recent)
	}
	if packets := l.takeTurns(); packets > 0 {
		return packets
	}
	l.ask()
	return l.takeTurns()
}

// Glance implements link.Glancer: it tries only the socket that last had packets.
func (l *Link) Glance() int {
	if l.recent == nil || len(l.pending) > 0 {
		return l.Receive()
	}
	l.pending = append(l.pending, l.recent)
	return l.takeTurns()
}

// takeTurns receives from the first pending socket that has packets. A socket that may have more packets stays pending,
// behind the others.
func (l *Link) takeTurns() int {
	l.hot = false
	for len(l.pending) > 0 {
		s := l.pending[0]
		l.pending = slices.Delete(l.pending, 0, 1)
		packets, more := l.receive(s, &l.losses)
		if more {
			l.pending = append(l.pending, s)
		}
		if packets > 0 {
			l.recent, l.hot = s, true
			return packets
		}
	}
	return 0
}

// ask polls all sockets, and adds those with packets to pending.
func (l *Link) ask() {
	for _, event := range l.events[:ready(l.poll, l.events[:])] {
		if s := l.sockets[event.Fd]; s != nil && !slices.Contains(l.pending, s) {
			l.pending = append(l.pending, s)
		}
	}
}

// Room implements link.Link: the receive buffer of a socket, minus a quarter for the kernel's own data.
func (l *Link) Room() int { return l.room / 4 * 3 }

// Numbers implements link.Link.
func (l *Link) Numbers() bool { return true }

// Descriptors implements link.Link. It returns an epoll descriptor, which is readable when any socket is.
func (l *Link) Descriptors() []int { return []int{l.poll} }

// SetAsleep implements link.Link.
func (l *Link) SetAsleep(bool) {}

// Counters holds the losses on reception, in packets or rows of packets.
type Counters struct {
	Truncated uint64 // longer than the receive buffer
	Control   uint64 // without complete ancillary data
	NoRoom    uint64 // dropped by the kernel because the socket's buffer was full
}

// Counters returns the counters. Any goroutine may call it, except during Add or Remove.
func (l *Link) Counters() Counters {
	c := Counters{Truncated: l.losses.truncated.Load(), Control: l.losses.control.Load(), NoRoom: l.past.Load()}
	for _, s := range l.sockets {
		c.NoRoom += s.lost()
	}
	return c
}

// Close implements link.Link.
func (l *Link) Close() error {
	err := errors.Join(l.ports.close(), unix.Close(l.poll))
	for _, s := range l.sockets {
		l.past.Add(s.lost())
		err = errors.Join(err, s.Close())
	}
	l.closed, l.sockets, l.pending, l.recent, l.hot = true, nil, nil, nil, false
	return err
}
