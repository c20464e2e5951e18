// SPDX-License-Identifier: Apache-2.0

package link

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/roced/roced/datapath/xsk"
	"golang.org/x/sys/unix"
)

// sender is the sending half of an XDP link. It has two paths:
//
//	frames in order ──► a run of minTrain or more ──► Packets: one call, segmented by the kernel or the NIC
//	                └─► all others ─────────────────► AF_XDP socket: one frame per packet
//
// The two paths use different queues of the kernel. To keep packets in order, frames change to the other path only
// while the current one is empty. On a veth pair both paths are empty after each call.
type sender struct {
	socket  *xsk.Socket // nil between Remove and Add
	packets *Packets    // nil: all frames are sent through the AF_XDP socket
	trains  Trains

	reserved xsk.Reserved
	holding  bool // reserved has not been committed
	draining bool // the socket is absent or about to be replaced: no frames are reserved in it

	apart *apart // state of sending without a socket; nil: not in use

	waiting   waiting     // committed frames, if packets is not nil
	inPackets bool        // the last frames were sent through packets
	down      bool        // packets has reported that the interface is down
	handed    Sent        // packets sent through packets since the last check of the carrier
	proved    time.Time   // time at which the AF_XDP socket last showed that there is a carrier
	unable    atomic.Bool // the kernel does not segment trains
	unkicked  int         // number of frames submitted since the last kick
	refused   int         // see Link.Refused
	takenBack int         // see Link.TakenBack
	sent      struct{ frames, trains, inTrains atomic.Uint64 }
}

// Trains controls whether frames are sent in trains.
type Trains struct {
	Use bool
	// Queued is true if the interface has a queueing discipline. That may drop a train as a whole, without segmenting
	// it, and the interface does not count such drops.
	Queued bool
	// Name is the name of the interface, to check its carrier.
	Name string
}

// Reserve implements Link.
func (s *sender) Reserve() []byte {
	if s.draining {
		return s.reserveApart()
	}
	if s.waiting.full() && !s.Flush() {
		return nil
	}
	if !s.holding {
		if s.reserved, s.holding = s.socket.Reserve(); !s.holding {
			return nil
		}
	}
	return s.reserved.Bytes()
}

// Commit implements Link. Without trains it flushes when the number of submitted frames reaches that of one kick. In
// copy mode this takes no more kicks than a later flush would, and the few frames in use stay in the processor's cache.
func (s *sender) Commit(length int) {
	if s.draining {
		s.apart.out.grow(length)
		return
	}
	s.holding = false
	if s.packets == nil {
		s.submit(s.reserved, length)
		return
	}
	s.waiting.add(s.reserved.Bytes()[:length], s.reserved)
}

// Flush implements Link. If the interface no longer exists it returns true, as a retry is useless.
func (s *sender) Flush() bool {
	for !s.waiting.empty() {
		sent, done := s.send(s.waiting.run())
		if s.waiting.remove(sent); !done {
			break
		}
	}
	s.checkCarrier()
	return s.flushSocket() && s.waiting.empty()
}

// send sends a run of frames, and returns the number of frames sent. done is false if the others must wait.
func (s *sender) send(run []committed) (sent int, done bool) {
	if s.trains.Use && len(run) >= minTrain && !s.unable.Load() && s.leaveSocket() {
		if time.Since(s.proved) > proofTime && len(run) > minTrain {
			run = run[:len(run)-1] // the last frame is sent through the AF_XDP socket; see proofTime
		}
		switch errno := s.packets.sendTrain(run); {
		case cannotCut(errno):
			s.unable.Store(true)
		case errno == unix.ENOMEM: // the memory may be sufficient for single frames
		case !s.finish(run, errno):
			return 0, false
		default:
			return len(run), true
		}
	}
	if s.leavePackets() {
		for _, c := range run {
			s.submit(c.reserved, len(c.frame))
		}
		return len(run), true
	}
	for i := range run {
		if !s.finish(run[i:i+1], s.packets.sendOne(run[i].frame)) {
			return i, false
		}
	}
	return len(run), true
}

// cannotCut reports whether the kernel does not segment trains: Linux before 6.2, or an interface without support.
func cannotCut(errno unix.Errno) bool {
	return errno == unix.EINVAL || errno == unix.EMSGSIZE || errno == unix.EOPNOTSUPP
}

// leaveSocket reports whether frames may be sent through packets, because no earlier frame is in flight in the AF_XDP
// socket.
func (s *sender) leaveSocket() bool {
	return s.inPackets || s.flushSocket() && s.socket.InFlight() == 0
}

// leavePackets reports whether frames may be sent through the AF_XDP socket, because no earlier frame is in flight in
// packets.
func (s *sender) leavePackets() bool {
	s.inPackets = s.inPackets && !s.packets.empty()
	return !s.inPackets
}

// submit passes a frame to the AF_XDP socket, and flushes the socket when the frames of one kick are complete.
func (s *sender) submit(frame xsk.Reserved, length int) {
	s.socket.Submit(frame, length)
	s.sent.frames.Add(1)
	if s.unkicked++; s.unkicked == xsk.KickFrames {
		s.flushSocket()
	}
}

// flushSocket flushes the AF_XDP socket, and reports whether the kernel has accepted all submitted frames. It also
// returns true if the interface no longer exists.
func (s *sender) flushSocket() bool {
	if s.socket == nil {
		return s.apart == nil || s.flushApart()
	}
	submitted := s.unkicked > 0
	s.unkicked = 0
	done := s.socket.Flush() == 0
	refused := s.socket.Refused()
	if s.refused += refused; submitted && done && refused == 0 {
		s.proved = time.Now()
	}
	return done || errors.Is(s.socket.Err(), xsk.ErrGone)
}

// SetTrains sets whether frames are sent in trains from now on. A link without Packets never sends trains. It runs
// under the lease.
func (s *sender) SetTrains(trains Trains) { s.trains = trains }

// TrainsUnable reports whether the kernel has refused a train. All frames are then sent separately. Any goroutine may
// call it.
func (s *sender) TrainsUnable() bool { return s.unable.Load() }

// TakeBack implements Link.
func (s *sender) TakeBack() {
	s.cancelWaiting()
	switch {
	case s.socket != nil:
		s.socket.TakeBack()
	case s.apart != nil:
		s.cancelApart()
	}
}

// cancelWaiting takes back the frames that wait for Flush.
func (s *sender) cancelWaiting() {
	for !s.waiting.empty() {
		run := s.waiting.run()
		s.cancel(run)
		s.takenBack += len(run)
		s.waiting.remove(len(run))
	}
}

// TakenBack implements Link.
func (s *sender) TakenBack() (frames int) {
	if frames, s.takenBack = s.takenBack, 0; s.socket != nil {
		frames += s.socket.TakenBack()
	}
	return frames
}

// Refused implements Link.
func (s *sender) Refused() (frames int) {
	frames, s.refused = s.refused, 0
	return frames
}
