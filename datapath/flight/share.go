// SPDX-License-Identifier: Apache-2.0

package flight

// Condition is the state of a connection that determines its share.
type Condition struct {
	Reliable bool // packets are acknowledged; otherwise none counts as in flight
	Awaits   bool // a response is expected within a timeout, and the peer is neither late nor not ready
	Paced    bool // congestion control limits its rate
	Memory   bool // the network is in memory: there is no receive ring
	Frame    int  // length of its longest packet that is not long, in bytes, with headers
	Longest  int  // maximum payload of a long packet, in bytes; 0: no long packets
	Room     int  // capacity of the peer's link in bytes; 0: the capacity is a number of frames
}

// share is a flow's part of the card's limit.
type share struct {
	window  int    // maximum number of packets in flight, if there are few flows
	reads   int    // maximum number of response packets in flight, if there are few flows
	grant   int    // number of packets of a grant; 0: there are few flows, which need no grants
	quantum int    // number of bytes of a grant
	lone    int    // maximum number of packets in flight of a single flow
	tenant  Amount // the tenant's part, for each kind
}

// divide divides the card's limit among the tenants in flight, and the tenant's part among its flows. Waiting flows
// count too, as they will be in flight soon; a flow that waits and is in flight counts twice, which is harmless. If
// frames differ in length, the budget in bytes is computed from the shortest.
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
		// A grant of fewPackets or less would be useless, as so few packets need no grant.
		s.grant = max(fewPackets+1, min(maxGrant, s.tenant.Packets/minGrants))
		s.quantum = max((fewPackets+1)*unit, min(maxGrant*unit, s.tenant.Bytes/minGrants))
	}
	return s
}

// part returns the number of response packets that one READ request covers.
func (s *share) part(frame int) int {
	switch {
	case s.grant > 0:
		return min(s.grant, max(fewPackets+1, packetsIn(s.quantum, frame)))
	default:
		return max(fewPackets, s.reads/2) // the next part is requested while this one arrives
	}
}

// packetsIn returns the number of packets with frames of a length that contain a number of bytes, rounded up.
func packetsIn(bytes, frame int) int { return (bytes + frame - 1) / frame }
