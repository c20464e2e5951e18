// SPDX-License-Identifier: Apache-2.0

package link

// Relay copies a frame for another link to send; false if that link has no room.
type Relay func(frame []byte) (taken bool)

// apart is the state of a link whose queue the interface no longer has: frames are built in the link's own memory, and
// another link sends them.
type apart struct {
	relay Relay
	out   frames // committed, not relayed yet
	ends  bool   // no more frames are reserved: the queue exists again
}

// SendApart makes a link whose socket was removed send through relay, until Add. It runs under the lease.
func (s *sender) SendApart(relay Relay) {
	s.apart = &apart{relay: relay}
	s.apart.out.allocate(nil)
}

// IsApart reports whether the link sends without a socket. Only the caller of SendApart and Add may call it.
func (s *sender) IsApart() bool { return s.apart != nil }

// EndApart reports whether all frames of a link that sends apart were relayed. After the first call no frame can be
// reserved. It runs under the lease.
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

// cancelApart takes back the frames that were not relayed.
func (s *sender) cancelApart() {
	s.takenBack += int(s.apart.out.count)
	s.apart.out.shrink(s.apart.out.count)
}
