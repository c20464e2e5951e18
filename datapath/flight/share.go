package flight

// Condition is the state of a connection that its share depends on.
type Condition struct {
	Reliable bool // packets are acknowledged; otherwise none counts as in flight
	Awaits   bool // the peer answers within a time: there is a time-out, and the peer is neither late nor not ready
	Paced    bool // congestion control has given it a rate
	Memory   bool // packets never leave memory: there is no receive ring
	Frame    int  // bytes of its longest packet, with headers
	Longest  int  // bytes of payload of a packet that stands for several; 0: no packet does
	Room     int  // bytes that the peer's link takes in; 0: frames limit it
}

// share is a flow's part of the card.
type share struct {
	window  int    // packets in flight, if flows are few
	reads   int    // likewise packets of responses
	grant   int    // packets of a grant; 0: flows are few, and need none
	quantum int    // bytes of a grant
	lone    int    // packets that one flow may have in flight
	tenant  Amount // the tenant's part, of each kind
}

// divide divides the card among the tenants in flight, and the tenant's part among its flows. Flows that wait will be in
// flight soon; one that waits and is in flight counts twice, which does not matter. Where frames differ in length, the
// budget is as many bytes as it would be if all were short.
func (f *Flow) divide() (s share) {
	c, t := &f.condition, f.tenant
	unit := t.scheduler.unit(c.Frame)
	s.tenant = Amount{maxFlight, maxFlight * unit}
	switch s.lone = maxFrames; {
	case c.Memory:
		s.lone = maxFlight
	case c.Room > 0:
		s.lone = min(maxFlight, c.Room/c.Frame)
	}
	if c.Room > 0 {
		s.tenant.Bytes = min(s.tenant.Bytes, c.Room)
	}
	if sharers := t.scheduler.sharers(); sharers > 1 {
		s.tenant = s.tenant.over(sharers)
	}
	packets := s.tenant.Packets
	if c.Room > 0 || unit < c.Frame {
		packets = min(packets, s.tenant.Bytes/c.Frame)
	}
	each := packets
	if flows := t.flows + t.waits; flows > 1 {
		each = packets / flows
	}
	s.window = max(firstPackets, min(s.lone, each))
	s.reads = min(2*maxPart, each)
	if c.Awaits && !c.Paced && s.window < 2*min(maxGrant, packets/minGrants) {
		s.grant = max(fewPackets+1, min(maxGrant, s.tenant.Packets/minGrants)) // fewer would not count
		s.quantum = max((fewPackets+1)*unit, min(maxGrant*unit, s.tenant.Bytes/minGrants))
	}
	return s
}

// part is the number of packets of response that one request of a READ is for; 0 in memory.
func (s *share) part(frame int) int {
	switch {
	case s.grant > 0:
		return min(s.grant, max(fewPackets+1, packetsIn(s.quantum, frame)))
	default:
		return max(fewPackets, s.reads/2) // the next one is requested while this one arrives
	}
}

// packetsIn is the number of packets that so many bytes are, the last of which may be longer than what is left.
func packetsIn(bytes, frame int) int { return (bytes + frame - 1) / frame }
