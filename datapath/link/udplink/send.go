// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"sync/atomic"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

const (
	frameCount = 256 // maximum number of waiting frames
	frameSize  = (wire.MaxHeaders + 4096 + wire.MaxTrailer + 63) &^ 63
	early      = 64 // number of frames after which Commit flushes, while they are in the processor's cache
	maxTrains  = 16 // maximum number of trains in one system call
	// maxTrain is the maximum number of packets of a train (UDP_MAX_SEGMENTS; 128 since Linux 6.9), and maxTrainBytes
	// the maximum number of bytes after its UDP header.
	maxTrain      = 64
	maxTrainBytes = 65535 - wire.IPv4Len - wire.UDPLen
)

// sender is the sending half of a Link.
//
//	Reserve, Commit ──► a ring of frames ──► Flush: grouped by port ──► trains, ICRCs corrected ──► sending sockets
type sender struct {
	ports     ports
	index     uint32 // of the interface, for groups and link-scope addresses
	numbering wire.Numbering

	memory       []byte
	order        [frameCount]uint8 // the ring: a permutation of the frame numbers
	lengths      [frameCount]int   // length of each frame, by number
	leaves       [frameCount]uint8 // place of the sending socket of each frame in ports, by number
	first, count int               // the waiting frames in the ring
	mixed        bool              // the waiting frames have different sending sockets
	alone        int               // number of frames at the front that must not be in trains

	messages      [maxTrains]message
	sizes         [maxTrains]int // number of packets of each message
	names         [maxTrains]name
	controls      [maxTrains][controlRoom]byte
	pieces        [frameCount]unix.Iovec
	used          int         // number of pieces in use
	unable        atomic.Bool // the kernel does not segment trains
	withoutTrains atomic.Bool // see SetTrains
	refused       int         // see link.Link.Refused
	takenBack     int         // see link.Link.TakenBack
	sent          struct{ frames, trains, inTrains atomic.Uint64 }
}

func (s *sender) allocate() {
	s.memory = make([]byte, frameCount*frameSize)
	for i := range s.order {
		s.order[i] = uint8(i)
	}
}

// at returns the number of the waiting frame at a place.
func (s *sender) at(place int) *uint8 { return &s.order[(s.first+place)%frameCount] }

// frame returns the waiting frame at a place.
func (s *sender) frame(place int) []byte {
	number := int(*s.at(place))
	return s.memory[number*frameSize:][:s.lengths[number]]
}

// Reserve implements link.Link.
func (s *sender) Reserve() []byte {
	if s.count == frameCount && !s.Flush() && s.count == frameCount {
		return nil
	}
	return s.memory[int(*s.at(s.count))*frameSize:][:frameSize]
}

// Commit implements link.Link.
func (s *sender) Commit(length int) {
	number := *s.at(s.count)
	s.lengths[number] = length
	s.leaves[number] = s.ports.place(headersOf(s.frame(s.count)))
	s.mixed = s.mixed || s.count > 0 && s.leaves[number] != s.leaves[*s.at(s.count - 1)]
	if s.count++; s.count%early == 0 {
		s.Flush()
	}
}

// gather groups the frames by sending socket, and keeps their order within each group, so that packets of several queue
// pairs form longer trains. Packets of one queue pair for one peer have the same source port, so they stay in order.
func (s *sender) gather() {
	var sorted [frameCount]uint8
	n := 0
	for port := range uint8(2 * len(s.ports.numbers)) {
		for place := s.alone; place < s.count; place++ {
			if number := *s.at(place); s.leaves[number] == port {
				sorted[n] = number
				n++
			}
		}
	}
	for i, number := range sorted[:n] {
		*s.at(s.alone + i) = number
	}
	s.mixed = false
}

// Flush implements link.Link.
func (s *sender) Flush() bool {
	if s.mixed {
		s.gather()
	}
	for s.count > 0 {
		fd, trains := s.build()
		n, errno := sendMessages(fd, s.messages[:trains])
		if n <= 0 || errno != 0 {
			if !s.fail(errno) {
				return false
			}
			continue
		}
		for _, size := range s.sizes[:n] {
			s.note(size)
			s.remove(size)
		}
	}
	return true
}

// remove removes frames from the front. An empty ring continues at its first place: the first frames are then used most
// often, and stay in the processor's cache.
func (s *sender) remove(frames int) {
	s.first, s.count, s.alone = (s.first+frames)%frameCount, s.count-frames, max(0, s.alone-frames)
	if s.count == 0 {
		s.first, s.mixed = 0, false
	}
}

func (s *sender) note(size int) {
	if size == 1 {
		s.sent.frames.Add(1)
		return
	}
	s.sent.trains.Add(1)
	s.sent.inTrains.Add(uint64(size))
}

// fail handles an error for the first message, which was not sent. It returns false if the message must wait.
func (s *sender) fail(errno unix.Errno) bool {
	size := s.sizes[0]
	switch errno {
	case unix.EAGAIN, unix.ENOMEM:
		return false
	case unix.EINTR:
		return true
	case unix.EINVAL, unix.EMSGSIZE, unix.EIO, unix.EOPNOTSUPP, unix.ENOPROTOOPT:
		if size > 1 { // packets exceed the path's MTU, or segmentation is not supported
			s.alone = size
			if errno == unix.EIO || errno == unix.EOPNOTSUPP || errno == unix.ENOPROTOOPT {
				s.unable.Store(true)
			}
			return true
		}
	}
	s.refused += size
	s.remove(size)
	return true
}

// TakeBack implements link.Link.
func (s *sender) TakeBack() {
	s.takenBack += s.count
	s.remove(s.count)
}

// TakenBack implements link.Link.
func (s *sender) TakenBack() (frames int) {
	frames, s.takenBack = s.takenBack, 0
	return frames
}

// SetTrains sets whether packets are sent in trains, which is the default.
func (s *sender) SetTrains(use bool) { s.withoutTrains.Store(!use) }

// TrainsUnable reports whether the kernel has permanently refused trains. Any goroutine may call it.
func (s *sender) TrainsUnable() bool { return s.unable.Load() }

// Refused implements link.Link.
func (s *sender) Refused() (frames int) {
	frames, s.refused = s.refused, 0
	return frames
}

// Sent returns the numbers of packets by the way in which they were sent. Any goroutine may call it.
func (s *sender) Sent() link.Sent {
	return link.Sent{Frames: s.sent.frames.Load(), Trains: s.sent.trains.Load(), InTrains: s.sent.inTrains.Load()}
}
