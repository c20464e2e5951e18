package link

// Relay has another link send a copy of a frame; false: it has no room for more.
type Relay func(frame []byte) (taken bool)

// apart is how a link sends whose queue the interface does not have any more: each frame is built in memory of the
// link's own, and another link sends it.
type apart struct {
	relay Relay
	out   frames // committed, not relayed yet
	ends  bool   // none are reserved: there is a queue again
}

// SendApart has a link send without a socket of its queue, which was removed, until Add. It runs under the lease.
func (s *sender) SendApart(relay Relay) {
	s.apart = &apart{relay: relay}
	s.apart.out.allocate(nil)
}

// IsApart says that the link sends without a socket. Who calls SendApart and Add may ask.
func (s *sender) IsApart() bool { return s.apart != nil }

// EndApart reports whether all frames of a link that sends apart were relayed. From the first call on none are taken. It
// runs under the lease.
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
