// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"

	"github.com/roced/roced/datapath/xsk"
)

// Add adds a socket, which the link then owns. Frames can be reserved only while the link has a socket of its lowest
// queue, or after SendApart. It runs under the lease.
func (l *XDP) Add(s *xsk.Socket) {
	l.sockets = append(l.sockets, s)
	if s.Attached().Queue != l.queue {
		return
	}
	if l.apart != nil {
		l.cancelApart()
		l.apart = nil
	}
	l.socket, l.draining = s, false
}

// Drain reports whether a socket is empty, so that Remove loses no frames: all received frames have been processed, and
// all committed frames have been sent, unless the interface is down. From the first call on, the socket accepts no
// frames to send. Before that, the caller must have made the XDP program stop redirecting frames to the socket. It runs
// under the lease.
func (l *XDP) Drain(s *xsk.Socket) (empty bool) {
	sent := s != l.socket || l.drain()
	return sent && l.borrowed != s && s.Waiting() == 0
}

// Remove removes a socket, which the caller must then close. Its remaining frames are lost and counted: received frames
// in the statistics, frames to send as taken back or refused. No frame of the socket may be borrowed. It runs under the
// lease.
func (l *XDP) Remove(s *xsk.Socket) {
	if statistics, err := s.Stats(); err == nil {
		l.past.Add(statistics)
	}
	l.past.RxDropped += uint64(s.Waiting())
	l.sockets = slices.DeleteFunc(l.sockets, func(other *xsk.Socket) bool { return other == s })
	l.turn = 0
	clear(l.frames[:]) // their memory is unmapped when the socket is closed
	if s == l.socket {
		l.leave()
	}
}

// drain is Drain for the frames to send.
func (s *sender) drain() (empty bool) {
	s.draining = true
	if s.holding {
		s.holding = false
		s.socket.Cancel(s.reserved)
	}
	s.Flush()
	return s.waiting.empty() && s.socket.InFlight() == 0 || s.down || s.socket.Err() != nil
}

// leave stops using the socket, and counts its unsent frames.
func (s *sender) leave() {
	s.drain()
	down := s.socket.Err() != nil
	s.cancelWaiting()
	left := s.socket.InFlight()
	s.takenBack += s.socket.TakenBack()
	if s.refused += s.socket.Refused(); down {
		s.takenBack += left
	} else {
		s.refused += left
	}
	s.socket, s.reserved, s.waiting, s.unkicked, s.down = nil, xsk.Reserved{}, waiting{}, 0, false
}
