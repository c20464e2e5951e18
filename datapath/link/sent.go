// SPDX-License-Identifier: Apache-2.0

package link

import (
	"time"

	"golang.org/x/sys/unix"
)

// Sent counts packets by the path that they used.
type Sent struct {
	Frames   uint64 // sent by the AF_XDP socket, or one by one after a train
	Trains   uint64
	InTrains uint64 // packets in these trains
}

// Add adds the counts of another link.
func (s *Sent) Add(other Sent) {
	s.Frames += other.Frames
	s.Trains += other.Trains
	s.InTrains += other.InTrains
}

// Sent returns the counts. Any goroutine may call it.
func (s *sender) Sent() Sent {
	return Sent{Frames: s.sent.frames.Load(), Trains: s.sent.trains.Load(), InTrains: s.sent.inTrains.Load()}
}

// finish handles the result of sending frames through packets: the kernel accepted or dropped them, or they have to
// wait.
func (s *sender) finish(run []committed, errno unix.Errno) (done bool) {
	s.down = errno == unix.ENETDOWN
	switch errno {
	case unix.EAGAIN, unix.EINTR, unix.ENETDOWN:
		return false
	case 0:
		s.inPackets = true
		if len(run) > 1 {
			s.handed.Trains++
			s.handed.InTrains += uint64(len(run))
		} else {
			s.handed.Frames++
		}
	case unix.ENOBUFS:
		s.noteDropped(len(run))
	default:
		s.refused += len(run)
	}
	s.cancel(run)
	return true
}

// cancel frees the memory of frames that do not use the AF_XDP socket.
func (s *sender) cancel(run []committed) {
	for i := range run {
		s.socket.Cancel(run[i].reserved)
	}
}

// noteDropped records that the kernel dropped a train, or a packet. A queueing discipline drops a train as a whole. An
// interface without one receives the packets one by one: it has dropped the last, perhaps others too, and counts each.
func (s *sender) noteDropped(packets int) {
	s.proved = time.Time{}
	if s.refused++; s.trains.Queued {
		s.refused += packets - 1
	}
}

// proofTime is the interval at which a packet of a train leaves through the AF_XDP socket. An interface without a
// carrier drops packets of trains silently, apart from its counter, and the kernel reports the loss of a carrier up to
// a second later. The AF_XDP socket reports it at once, and then the card queries the kernel.
const proofTime = time.Millisecond

// checkCarrier checks whether the interface has lost its carrier. The kernel may then drop trains without an error, and
// count each as one packet.
func (s *sender) checkCarrier() {
	handed := s.handed
	if s.handed = (Sent{}); handed == (Sent{}) {
		return
	}
	if !s.packets.running(s.trains.Name) {
		s.refused += int(handed.Frames + handed.InTrains)
		return
	}
	s.sent.frames.Add(handed.Frames)
	s.sent.trains.Add(handed.Trains)
	s.sent.inTrains.Add(handed.InTrains)
}
