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

// Limits limits the packets in flight of one connection. conn.Requester.Next observes it. Numbers are in packets.
type Limits struct {
	Window  int  // maximum number of packets sent and not acknowledged
	Grant   int  // number of packets that may be sent now, or Unlimited
	Begun   bool // a part of the grant is used: a message longer than the rest needs another grant
	Few     int  // no grant is needed if the packets in flight and those left to send are together at most this number
	Reads   int  // maximum number of READ response packets that are requested and have not arrived
	Part    int  // number of response packets that one READ request covers; 0: all
	Longest int  // maximum payload of a long packet, in bytes; 0: no long packets
	Paced   bool // packets are sent separately, at a limited rate, and each requests an acknowledgement
}

// Unlimited is the value of a limit that does not apply.
const Unlimited = math.MaxInt32

// Limits returns the current limits, which are valid until the next call of a method. flying is the connection's number
// of packets in flight, and asked the number of READ response packets that were requested and have not arrived.
func (f *Flow) Limits(flying, asked int) *Limits {
	f.flying = [kinds]int{flying, asked}
	// With few flows, the limits do not change during a turn.
	if f.condition.Reliable && !(f.begun && f.share.grant == 0) {
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

// Longest returns Limits.Longest. It also applies to READ responses that the connection sends, which have no other
// limit.
func (f *Flow) Longest() int { return f.condition.Longest }

// limitReads sets the limits of READs. On an in-memory network they are unlimited.
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

// rest returns the number of packets left in the grant for sends, also considering its bytes.
func (f *Flow) rest() int {
	g := &f.grants[Sends]
	if g.deficit <= 0 {
		return 0
	}
	return min(g.left, packetsIn(g.deficit, f.condition.Frame))
}

// Amount is a number of packets and their total length in bytes, with headers.
type Amount struct{ Packets, Bytes int }

func (a Amount) plus(b Amount) Amount  { return Amount{a.Packets + b.Packets, a.Bytes + b.Bytes} }
func (a Amount) minus(b Amount) Amount { return Amount{a.Packets - b.Packets, a.Bytes - b.Bytes} }

// over returns one of n equal parts of an amount.
func (a Amount) over(n int) Amount { return Amount{a.Packets / n, a.Bytes / n} }

// within reports whether both numbers are at most those of b.
func (a Amount) within(b Amount) bool { return a.Packets <= b.Packets && a.Bytes <= b.Bytes }

// least returns the minimum of each number.
func (a Amount) least(b Amount) Amount {
	return Amount{min(a.Packets, b.Packets), min(a.Bytes, b.Bytes)}
}

const (
	// maxFlight is the maximum number of packets in flight of all connections of a card: half of the receive ring.
	maxFlight = 1024

	// maxFrames is the maximum number of packets in flight of one connection, if the capacity of the peer's link is a
	// number of frames: a veth ring has 256. It does not apply to in-memory networks, whose long packets need few
	// frames.
	maxFrames = 128

	// maxGrant is the number of packets of a grant: twice the acknowledgement interval of package conn.
	maxGrant = 64

	// minGrants is the minimum number of grants that fit into a tenant's part, so that some flows send while others
	// wait for acknowledgements.
	minGrants = 4

	// fewPackets is the number of packets that need no grant.
	fewPackets = 8

	// firstPackets is the maximum number of packets in flight of a flow that takes turns and whose peer has not
	// responded yet. It is also the minimum window.
	firstPackets = 4

	// maxPart is the maximum number of packets of a part of a READ. Shorter parts would reduce the throughput if
	// max_rd_atomic is 1, as two parts are then separated by a round trip.
	maxPart = maxFlight / minGrants
)
