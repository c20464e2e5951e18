package link

import (
	"slices"

	"github.com/roced/roced/datapath/xsk"
)

// Add has the link use a further socket, which it owns from then on. While there is none of its lowest queue,
// no frame can be reserved, unless the link sends apart. It runs under the lease.
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

// Drain reports whether a socket is empty, so that Remove loses nothing: nothing that it received is
// left, and all that was committed has left. If the interface is down, nothing more can leave. From the
// first call on the socket takes no frames to send. What it receives must have been stopped before: its
// XDP program must not redirect to it any more. It runs under the lease.
func (l *XDP) Drain(s *xsk.Socket) (empty bool) {
	sent := s != l.socket || l.drain()
	return sent && l.borrowed != s && s.Waiting() == 0
}

// Remove takes a socket out, which the caller then closes. Frames that are left in it are lost, and
// counted: received ones in the statistics, those to send as taken back or refused. It runs under the
// lease. Frames of the socket must not be borrowed.
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

// drain is Drain for what is sent.
func (s *sender) drain() (empty bool) {
	s.draining = true
	if s.holding {
		s.holding = false
		s.socket.Cancel(s.reserved)
	}
	s.Flush()
	return s.waiting.empty() && s.socket.InFlight() == 0 || s.down || s.socket.Err() != nil
}

// leave gives up the socket, and counts what it has not sent.
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
