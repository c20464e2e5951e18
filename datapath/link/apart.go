// SPDX-License-Identifier: Apache-2.0

package link

// Relay copies a frame to another link, which sends it. It returns false if that link has no room.
type Relay func(frame []byte) (taken bool)

// apart is the state of a link whose queue was removed from the interface. Its frames are built in its own memory, and
// sent by another link.
type apart struct {
	relay Relay
	out   frames // committed frames that are not relayed yet
	ends  bool   // no more frames are reserved, as the queue exists again
}

// SendApart makes a link whose socket was removed send through relay until Add. It runs under the lease.
func (s *sender) SendApart(relay Relay) {
	s.apart = &apart{relay: relay}
	s.apart.out.allocate(nil)
}

// IsApart reports whether SendApart is in effect. Only the goroutine that calls SendApart and Add may call it.
func (s *sender) IsApart() bool { return s.apart != nil }

// EndApart stops reserving frames for a link after SendApart, and reports whether all its frames have been relayed. The
// caller repeats it until it returns true. It runs under the lease.
func (s *sender) EndApart() (empty bool) {
	s.apart.ends = true
	return s.Flush()
}

// reserveApart is Reserve without a socket.
func (s *sender) reserveApart() []byte {
	if s.apart == nil || s.apart.ends {
		return nil
	}
	if room := s.apart.out.room(); room != nil {
		return room
	}
	s.flushApart()
	return s.apart.out.room()
}

// flushApart is Flush without a socket.
func (s *sender) flushApart() (done bool) {
	out := &s.apart.out
	for out.count > 0 && s.apart.relay(out.at(0)) {
		out.shrink(1)
	}
	return out.count == 0
}

// cancelApart counts the frames that were not relayed as taken back, and discards them.
func (s *sender) cancelApart() {
	s.takenBack += int(s.apart.out.count)
	s.apart.out.shrink(s.apart.out.count)
}
