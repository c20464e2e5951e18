// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"slices"
	"time"

	"github.com/roced/roced/datapath/xsk"
)

// XDP is a Link over AF_XDP sockets, one for each receive queue of an interface, or for some of them: a socket receives
// only the frames of its own queue. It sends through the socket of its lowest queue. Sockets can be replaced while it
// is open (Add, Drain, Remove). If the interface permanently loses the lowest queue, another link sends the frames
// (SendApart).
type XDP struct {
	queue    int // the lowest queue
	sockets  []*xsk.Socket
	turn     int         // index of the socket that Receive tries first
	borrowed *xsk.Socket // the socket whose frames the last Receive returned
	frames   [maxBurst]xsk.Received
	next     int            // index in frames of the next frame
	count    int            // number of frames
	past     xsk.Statistics // of removed sockets

	sender
}

// NewXDP returns a link over sockets, which it then owns; the first is that of the lowest queue. If packets is not nil,
// the link owns it too, and frames may also be sent in trains (see SetTrains).
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

// Release implements Link. If the fill ring was empty, the kernel is woken when Receive next finds no frame.
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

// SetAsleep implements Link. It does nothing: the kernel always makes a socket readable when a frame is in its ring.
func (l *XDP) SetAsleep(bool) {}

// Statistics returns the sum of the kernel's counters for all sockets, including removed ones. Any goroutine may call
// it, but not during Add or Remove.
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

// leaveTime is the maximum time for which Close waits for the NIC to send.
const leaveTime = time.Second

// Close implements Link. In zero-copy mode the NIC sends from the socket's memory, so Close waits until the frames are
// sent (emulated NICs have always sent them by then). In copy mode the kernel has already copied all flushed frames.
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
