// SPDX-License-Identifier: Apache-2.0

package flight

import "math"

// Kind is a direction of packets in flight. Each kind has its own budget.
type Kind uint8

// The kinds.
const (
	Sends Kind = iota // packets that flows send
	Reads             // packets of responses to READs, which peers send
	kinds
)

// Limits bound the packets in flight of one connection. conn.Requester.Next observes them.
type Limits struct {
	Window  int  // packets sent and not acknowledged
	Grant   int  // packets that may be sent now, or Unlimited
	Begun   bool // a part of the grant is used: a message that exceeds the rest needs another grant
	Few     int  // packets in flight and left to send that, together, need no grant
	Reads   int  // packets of READ responses that are requested and have not arrived
	Part    int  // response packets that one READ request covers; 0: all
	Longest int  // maximum payload of a long packet, in bytes; 0: no long packets
	Paced   bool // packets leave one by one, at a rate, and each requests an acknowledgement
}

// Unlimited is a number of packets that means no limit.
const Unlimited = math.MaxInt32

// Limits returns the limits now, until the next call of a method. flying is the connection's number of packets in
// flight, and asked of READ response packets that were requested and have not arrived.
func (f *Flow) Limits(flying, asked int) *Limits {
	f.flying = [kinds]int{flying, asked}
	if f.condition.Reliable && !(f.begun && f.share.grant == 0) { // with few flows, the limits do not change during a turn
		f.limit(flying, asked)
	}
	return &f.limits
}

// limit sets the limits.
func (f *Flow) limit(flying, asked int) {
	f.begun = true
	s, l := &f.share, &f.limits
	*l = Limits{Window: s.window, Grant: Unlimited, Few: fewPackets, Longest: f.condition.Longest, Paced: f.condition.Paced}
	switch g := &f.grants[Sends]; {
	case s.grant == 0:
	case f.stranger[Sends]:
		l.Window, l.Grant, l.Few = max(1, flying+g.left), g.left, 0
	default:
		l.Grant, l.Begun = f.rest(), g.left < g.size
		next := l.Grant
		if next == 0 {
			next = s.grant
		}
		l.Window = min(s.lone, flying+next)
	}
	f.limitReads(asked)
}

// Longest returns Limits.Longest, for responses: they have no other limit.
func (f *Flow) Longest() int { return f.condition.Longest }

// limitReads sets the limits of READs. In memory there are none.
func (f *Flow) limitReads(asked int) {
	s, l, granted := &f.share, &f.limits, asked+f.grants[Reads].left
	switch {
	case f.condition.Memory:
		l.Reads = Unlimited
	case f.stranger[Reads]:
		l.Reads, l.Part = granted, f.first
	case s.grant > 0:
		l.Reads, l.Part = max(fewPackets, granted), s.part(f.condition.Frame)
	default:
		free := s.tenant.Packets - f.tenant.known[Reads].granted.Packets
		l.Reads, l.Part = max(fewPackets, granted, min(s.reads, asked+free)), s.part(f.condition.Frame)
	}
}

// rest returns the number of packets left of the grant for sends.
func (f *Flow) rest() int {
	g := &f.grants[Sends]
	if g.deficit <= 0 {
		return 0
	}
	return min(g.left, packetsIn(g.deficit, f.condition.Frame))
}

// Amount is a number of packets and their length in bytes, with headers.
type Amount struct{ Packets, Bytes int }

func (a Amount) plus(b Amount) Amount  { return Amount{a.Packets + b.Packets, a.Bytes + b.Bytes} }
func (a Amount) minus(b Amount) Amount { return Amount{a.Packets - b.Packets, a.Bytes - b.Bytes} }

// over divides an amount into n equal parts, and returns one.
func (a Amount) over(n int) Amount { return Amount{a.Packets / n, a.Bytes / n} }

// within reports whether neither number exceeds that of another amount.
func (a Amount) within(b Amount) bool { return a.Packets <= b.Packets && a.Bytes <= b.Bytes }

// least returns the minimum of each number.
func (a Amount) least(b Amount) Amount {
	return Amount{min(a.Packets, b.Packets), min(a.Bytes, b.Bytes)}
}

const (
	// maxFlight is the maximum number of packets in flight of a card's connections: half of the receive ring.
	maxFlight = 1024

	// maxFrames is the maximum for one connection whose peer's link is limited by frames: a veth ring has 256. Long
	// packets need few frames.
	maxFrames = 128

	// maxGrant is the number of packets of a grant: twice the acknowledgement interval of package conn.
	maxGrant = 64

	// minGrants is the number of grants that a tenant's part has room for, so that some flows send while others
	// wait for acknowledgements.
	minGrants = 4

	// fewPackets is the number of packets that need no grant.
	fewPackets = 8

	// firstPackets is the number of packets in flight of a flow that takes turns until its peer has responded, and the
	// minimum window.
	firstPackets = 4

	// maxPart is the maximum number of packets of a part of a READ. Shorter parts would reduce throughput if
	// max_rd_atomic is 1, as a round trip separates two parts.
	maxPart = maxFlight / minGrants
)
