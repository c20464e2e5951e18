package flight

import "math"

// Kind is a direction of packets in flight. Each has a budget of its own.
type Kind uint8

// The kinds.
const (
	Sends Kind = iota // packets that flows send
	Reads             // packets of responses to READs, which peers send
	kinds
)

// Limits bound what one connection may have in flight. conn.Requester.Next keeps to them.
type Limits struct {
	Window  int  // packets sent and not acknowledged
	Grant   int  // packets that may be sent now, or Unlimited
	Begun   bool // a part of the grant is used: a message that is longer than the rest needs another one
	Few     int  // packets in flight and left to send that, together, need no grant
	Reads   int  // packets of READ responses that are requested and have not arrived
	Part    int  // packets of response that one READ request is for; 0: all
	Longest int  // bytes of payload of a packet that stands for several; 0: no packet does
	Paced   bool // packets leave one by one, at a rate: each asks for an acknowledgement
}

// Unlimited is a number of packets that is no limit.
const Unlimited = math.MaxInt32

// Limits returns what the connection may have in flight now, until the next call of a method. The connection says how many
// packets are, and how many of responses were requested and have not arrived.
func (f *Flow) Limits(flying, asked int) *Limits {
	f.flying = [kinds]int{flying, asked}
	if f.condition.Reliable && !(f.begun && f.share.grant == 0) { // limits of few flows are those of the turn
		f.limit(flying, asked)
	}
	return &f.limits
}

// limit sets the limits anew.
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

// Longest is Limits.Longest, for answers: they have no other limit.
func (f *Flow) Longest() int { return f.condition.Longest }

// limitReads adds the limits of READs. In memory there are none.
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

// rest is the number of packets left of the grant for sends.
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

// over divides an amount into n equal parts.
func (a Amount) over(n int) Amount { return Amount{a.Packets / n, a.Bytes / n} }

// within reports whether neither number is more than another amount's.
func (a Amount) within(b Amount) bool { return a.Packets <= b.Packets && a.Bytes <= b.Bytes }

// least has of each number the smaller one.
func (a Amount) least(b Amount) Amount {
	return Amount{min(a.Packets, b.Packets), min(a.Bytes, b.Bytes)}
}

const (
	// maxFlight is the number of packets that the connections of a card have in flight: half of the receive ring.
	maxFlight = 1024

	// maxFrames is how many of these one connection has where the peer's link is limited by frames: a veth ring
	// has 256. Long packets need few.
	maxFrames = 128

	// maxGrant is the number of packets of a grant: twice the acknowledgement interval of package conn.
	maxGrant = 64

	// minGrants is the number of grants that a tenant's part has room for, so that some flows send while others
	// wait for acknowledgements.
	minGrants = 4

	// fewPackets need no grant.
	fewPackets = 8

	// firstPackets is what a flow that takes turns has in flight until its peer has answered, and the smallest
	// window.
	firstPackets = 4

	// maxPart is the number of packets of the longest part of a READ. Shorter ones would cost throughput where
	// max_rd_atomic is 1, so that a round trip is between two.
	maxPart = maxFlight / minGrants
)
