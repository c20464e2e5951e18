package link

import (
	"errors"
	"slices"
	"time"

	"github.com/roced/roced/datapath/xsk"
)

// XDP is a Link over AF_XDP sockets, one for each receive queue of an
// interface, or for some of them: a socket sees the frames of its own queue only.
// It sends through that of its lowest queue. Sockets come and go while it is open
// (Add, Drain, Remove); if the lowest queue has gone for good, it sends apart (SendApart).
type XDP struct {
	queue    int // the lowest
	sockets  []*xsk.Socket
	turn     int         // the socket that Receive tries first
	borrowed *xsk.Socket // the socket whose frames the last Receive returned
	frames   [maxBurst]xsk.Received
	next     int            // of frames
	count    int            // likewise: so many there are
	past     xsk.Statistics // of sockets that were removed

	sender
}

// NewXDP makes a link of sockets, which it owns from then on; the first is of the lowest queue. With packets, frames may also leave in
// trains (see SetTrains); nil if not.
func NewXDP(sockets []*xsk.Socket, packets *Packets) *XDP {
	return &XDP{queue: sockets[0].Attached().Queue, sockets: slices.Clone(sockets), sender: sender{socket: sockets[0], packets: packets}}
}

// Receive implements Link. All frames of a burst are from one socket; the sockets take turns.
func (l *XDP) Receive() int {
	for range l.sockets {
		s := l.sockets[l.turn]
		if l.turn++; l.turn == len(l.sockets) {
			l.turn = 0
		}
		n := s.Receive(l.frames[:])
		if n == 0 {
			s.WakeReceive()
			continue
		}
		l.borrowed, l.next, l.count = s, 0, n
		return n
	}
	return 0
}

// Next implements Link.
func (l *XDP) Next() []byte {
	l.next++
	return l.frames[l.next-1].Data
}

// Behind implements Link.
func (l *XDP) Behind(n int) []byte {
	if at := l.next + n; at < l.count {
		return l.frames[at].Data
	}
	return nil
}

// Room implements Link.
func (l *XDP) Room() int { return 0 }

// Numbers implements Link.
func (l *XDP) Numbers() bool { return false }

// Release implements Link. If the fill ring was empty, the kernel is woken when Receive next finds
// no frame.
func (l *XDP) Release() {
	l.borrowed.Release()
	l.borrowed = nil
}

// Descriptors implements Link.
func (l *XDP) Descriptors() []int {
	fds := make([]int, len(l.sockets))
	for i, s := range l.sockets {
		fds[i] = s.FD()
	}
	return fds
}

// SetAsleep implements Link. The kernel makes a socket readable when a frame is in its ring,
// always.
func (l *XDP) SetAsleep(bool) {}

// Statistics sums the kernel's counters over the sockets, also those that were removed. Any goroutine
// may call it, but not while Add or Remove runs.
func (l *XDP) Statistics() (sum xsk.Statistics, err error) {
	sum = l.past
	for _, s := range l.sockets {
		one, err := s.Stats()
		if err != nil {
			return sum, err
		}
		sum.Add(one)
	}
	return sum, nil
}

// leaveTime is how long Close waits for a NIC to send.
const leaveTime = time.Second

// Close implements Link. In zero-copy a NIC sends from the socket's memory, and what it has not sent would be lost with
// that (emulated ones have sent by then). In copy mode the kernel has taken all that was flushed.
func (l *XDP) Close() (err error) {
	if l.socket != nil && l.socket.Attached().ZeroCopy {
		for end := time.Now().Add(leaveTime); !l.drain() && time.Now().Before(end); {
			time.Sleep(leaveTime / 10_000)
		}
	}
	for _, s := range l.sockets {
		err = errors.Join(err, s.Close())
	}
	if l.packets != nil {
		err = errors.Join(err, l.packets.Close())
	}
	return err
}
