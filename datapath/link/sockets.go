// SPDX-License-Identifier: Apache-2.0

package link

import (
	"slices"

	"github.com/roced/roced/datapath/xsk"
)

// Add adds a socket, which the link then owns. Without a socket of the lowest queue no frame can be reserved, unless
// the link sends apart. It runs under the lease.
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
// all committed ones have left, unless the interface is down. After the first call the socket accepts no frames to
// send. The caller has stopped reception before: the XDP program must not redirect frames to it any more. It runs under
// the lease.
func (l *XDP) Drain(s *xsk.Socket) (empty bool) {
	sent := s != l.socket || l.drain()
	return sent && l.borrowed != s && s.Waiting() == 0
}

// Remove removes a socket, which the caller then closes. Its remaining frames are lost, and counted: received ones in
// the statistics, those to send as taken back or refused. It runs under the lease. Frames of the socket must not be
// borrowed.
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

// drain is Drain for sent frames.
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
