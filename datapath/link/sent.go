// SPDX-License-Identifier: Apache-2.0

package link

import (
	"time"

	"golang.org/x/sys/unix"
)

// Sent counts sent packets by the way in which they were sent.
type Sent struct {
	Frames   uint64 // packets sent separately
	Trains   uint64 // trains
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

// finish handles the result of sending frames through packets. It returns false if the frames must wait.
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

// cancel frees the memory of frames that are not sent through the AF_XDP socket.
func (s *sender) cancel(run []committed) {
	for i := range run {
		s.socket.Cancel(run[i].reserved)
	}
}

// noteDropped records that the kernel has dropped a train or a packet (ENOBUFS). A queueing discipline drops a train as
// a whole. Without one, the interface receives the segmented packets. It has then dropped the last one, which is
// counted here, and possibly others, which the interface counts.
func (s *sender) noteDropped(packets int) {
	s.proved = time.Time{}
	if s.refused++; s.trains.Queued {
		s.refused += packets - 1
	}
}

// proofTime is the interval at which one packet of a train is sent through the AF_XDP socket instead. If the interface
// has no carrier, it drops the packets of trains without an error, and the kernel reports the loss of the carrier up to
// one second later. The AF_XDP socket reports an error immediately, and the card then queries the kernel.
const proofTime = time.Millisecond

// checkCarrier counts the packets that were sent through packets since the last check: as refused if the interface has
// no carrier, as the kernel then drops trains without an error and counts each as one packet; otherwise as sent.
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
