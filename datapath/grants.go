package datapath

import (
	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/wire"
)

// How connections share what may be on its way: packets that they send, and, apart from these, responses to their READs,
// which come to this card. A card's share is divided among the sessions that have packets on their way, and a session's
// part among its connections as long as these are few. Many would have a few packets each: short trains, and an
// acknowledgement for every few packets. So they take turns instead, each with a grant of packets at a time.
//
//	a packet to send ─► admits ─► room in the session's part ─► a grant: it is sent, and those behind it
//	                           └► none: the connection waits ─► answers to others make room ─► a grant, a turn
//	                                                         └► none do for a while: who has room does not count
//
// A grant is given back as its packets are acknowledged, or when nothing is left to send. What is little does not
// wait, and neither does a packet that is sent again alone. Who has not heard of its peer, since it began or since grants
// were waited for in vain, sends and asks for a few packets, and gets no grant: many whose peers are gone would have all.
//
// The peer sends all of a response at once. So a long READ is asked for in parts, each of which is a request to the peer
// (conn.Requester.Part), and a request needs a grant of all of its response. Of few connections each has its share here
// too, and one request in any case.

const (
	// maxFlight is how many packets a card's connections have on their way: half of what a card's receive ring
	// holds.
	maxFlight = 1024

	// maxFrames is how many of these one connection has where frames, and not bytes, bound what a peer's link takes
	// in: the ring of a veth has 256. Long packets need few.
	maxFrames = 128

	// maxGrant is the most packets of a grant: twice the packets after which conn asks for an acknowledgement.
	maxGrant = 64

	// minGrants is how many grants a session's part has room for at least, so that some connections send while others
	// are acknowledged.
	minGrants = 4

	// fewPackets is what a connection reads without a grant, and sends, if that is all it has.
	fewPackets = 8

	// firstPackets is what it sends, and asks for with a request, where connections take turns, until its peer has answered.
	firstPackets = 4

	// maxPart is the longest part of a READ, in packets: shorter ones would cost a rate where max_rd_atomic is 1, so that a
	// round trip is between two.
	maxPart = maxFlight / minGrants
)

// kind is what a session has a part of.
type kind uint8

const (
	sends kind = iota // packets that its connections send
	reads             // packets that their peers send, in response to READs
	kinds
)

// grant is a connection's part.
type grant struct {
	size, left    int    // its packets, and those not sent
	counted       int    // what the session has counted of the connection's
	count         uint32 // the session's, when it did
	waits         bool
	wants         int         // the packets that it waits for
	before, after *Connection // that wait too
}

// share is how many packets a connection may have on their way.
type share struct {
	packets uint32      // its part
	reads   int         // its part of what comes, in response to READs
	grant   int         // how many it has at a time instead; 0: the connections are few
	session int         // the session's part, of each kind
	lone    int         // what a connection may have at most
	memory  bool        // the network is one in memory, with long packets
	untried [kinds]bool // its peer is still to answer, before it may have a grant
}

// heard is in which count of its session's grants, of each kind, a connection's peer last answered, plus one; 0: never.
type heard [kinds]uint32

// note notes that it answers.
func (h *heard) note(all *[kinds]grants) {
	for k := range all {
		h[k] = all[k].count + 1
	}
}

// untried says that it has not answered yet, or not since grants were waited for in vain.
func (h *heard) untried(all *[kinds]grants) (is [kinds]bool) {
	for k := range all {
		is[k] = h[k] != all[k].count+1
	}
	return is
}

// share is the connection's. One that has a rate, or no time-out, or whose peer is not ready or has not answered in time,
// takes no turns: it would keep others waiting.
func (c *Connection) share() (s share) {
	if !c.Reliable() {
		return share{packets: maxFlight}
	}
	most := maxFlight
	s.lone = maxFrames
	if room := c.engine.link.Room(); room > 0 {
		most = min(most, room/(c.MTU.Bytes()+wire.MTUOverhead))
		s.lone = most
	}
	if s.memory = c.Long && c.engine.memory.Longest() > 0; s.memory {
		s.lone = maxFlight
	}
	sessions := c.engine.timers.flights
	if all := c.engine.timers.ofCard; all != nil {
		sessions = int(all.Load())
	}
	flights := c.qp.Session.flights
	for k := range kinds { // those that wait come soon: some may be counted twice, which does not matter
		flights += c.qp.Session.grants[k].waiting
	}
	flights = max(1, flights)
	s.session = most / max(1, sessions)
	s.packets = uint32(min(s.lone, s.session/flights))
	s.reads = min(2*maxPart, s.session/flights)
	if grant := min(maxGrant, s.session/minGrants); int(s.packets) < 2*grant && !c.congested && c.Timeout != 0 && c.Requester.InFlight() {
		s.grant = max(grant, fewPackets+1) // few would not count
		s.untried = c.heard.untried(&c.qp.Session.grants)
	}
	return s
}

// part is how many packets of response one request of a READ is for, at most; 0 in memory, where there is no ring for these.
func (s share) part() uint32 {
	switch {
	case s.memory:
		return 0
	case s.untried[reads]:
		return firstPackets
	case s.grant > 0:
		return uint32(s.grant)
	}
	return uint32(max(fewPackets, s.reads/2)) // the next is asked for while this one comes
}

// window is how many packets the connection may have on their way now, if it is granted what it has not yet.
func (c *Connection) window(s share) uint32 {
	switch {
	case s.untried[sends]:
		return firstPackets
	case s.grant == 0:
		return s.packets
	}
	left := c.grants[sends].left
	if left == 0 {
		left = s.grant
	}
	return uint32(min(s.lone, c.Requester.Flying()+left))
}

// next describes the packet to send next. Of a grant that has been begun what a message does not fit into is given back:
// trains begin with messages, since the first packet of a WRITE is longer than those behind it.
func (c *Connection) next(s share, p *conn.Packet) conn.Step {
	c.Requester.Part = s.part()
	step := c.Requester.Next(c.window(s), p)
	if g := &c.grants[sends]; step == conn.Ready && g.left < g.size && !p.Fits(g.left) {
		c.returnGrant(sends)
		step = c.Requester.Next(c.window(s), p)
	}
	return step
}

// admits says whether the packet in hand may be sent now. If not, the connection gets a turn when it may.
func (c *Connection) admits(s share, p *conn.Packet) bool {
	if responses := p.Responses(); responses > 0 {
		return c.admitsRead(s, p, responses)
	}
	if s.grant == 0 || s.untried[sends] || c.grants[sends].left > 0 || p.Hurries(&c.Requester, fewPackets) {
		c.qp.Session.grants[sends].pass(sends, c)
		return true
	}
	return c.qp.Session.grants[sends].obtain(sends, c, s, s.grant)
}

// admitsRead is admits for a request of a READ with so many packets of response. In memory there is no ring for these.
func (c *Connection) admitsRead(s share, p *conn.Packet, responses int) (ok bool) {
	now, waits := asked(&c.Requester), false
	switch {
	case c.grants[reads].left >= responses, now+responses <= fewPackets, s.memory:
		ok = true
	case p.Again(&c.Requester) && c.Requester.InFlight(): // of a peer that is late all would come at once
		ok = true
	case s.untried[reads] && now > 0: // the next answer gives a turn
	case s.grant == 0: // likewise
		ok = now == 0 || now+responses <= s.reads && c.qp.Session.grants[reads].granted+responses <= s.session
	case now > 0 && now+responses > s.lone: // the next answer gives a turn here too: a peer that is gone has no more than this
	default:
		c.returnGrant(reads) // what is left is too little
		ok = c.qp.Session.grants[reads].obtain(reads, c, s, responses)
		waits = !ok
	}
	if !waits {
		c.qp.Session.grants[reads].pass(reads, c)
	}
	if !ok {
		c.returnGrant(sends) // nothing is sent meanwhile
	}
	return ok
}

// asked is how many PSNs are from the oldest that is not acknowledged to where the last READ that was sent ends: 0 if no
// response is to come.
func asked(r *conn.Requester) int { return max(0, r.PSN.Ahead(r.Oldest())-r.Flying()) }

// give gives the connection a grant.
func (c *Connection) give(k kind, packets int) {
	c.grants[k].size, c.grants[k].left = packets, packets
	c.recount()
}

// spend counts a packet that has been sent.
func (c *Connection) spend(p *conn.Packet) {
	if responses := p.Responses(); responses > 0 {
		c.grants[reads].left -= min(c.grants[reads].left, responses)
	} else {
		c.grants[sends].left -= min(c.grants[sends].left, int(p.Packets))
	}
}

// recount has the session count what the connection has of its part: of one without time-out nobody would say that its
// packets are not on their way any more, and one that has failed still has their PSNs. The few packets that need no grant
// do not count: many connections that send or read little would keep one waiting that does much.
func (c *Connection) recount() {
	now := [kinds]int{c.grants[sends].left, c.grants[reads].left}
	if c.Timeout != 0 && c.Requester.InFlight() && c.Requester.Begun() > 0 {
		sent, coming := c.Requester.Unanswered()
		for k, packets := range [kinds]int{sends: sent, reads: coming} {
			if packets > fewPackets {
				now[k] += packets
			}
		}
	}
	for k := range kinds {
		c.qp.Session.grants[k].set(&c.grants[k], now[k])
	}
}

// followGrant is for an answer, or a time-out: it may have made room, for others.
func (c *Connection) followGrant() {
	all := &c.qp.Session.grants
	if !c.Requester.InFlight() {
		c.endGrant()
	} else {
		before := [kinds]int{all[sends].granted, all[reads].granted}
		c.recount()
		for k := range kinds {
			if g := &all[k]; g.granted < before[k] && g.vain > 0 {
				g.vain = 0
				if g.first != nil { // it need not wait for so long
					c.engine.timers.follow(g.first)
				}
			}
		}
	}
	c.admitOthers()
}

// returnGrant gives back what the connection does not need, of these kinds.
func (c *Connection) returnGrant(these ...kind) {
	for _, k := range these {
		if g := &c.grants[k]; g.left > 0 {
			g.size, g.left = 0, 0
			c.recount()
			c.admitOthers()
		}
	}
}

// endGrant is for a connection that sends nothing new for now.
func (c *Connection) endGrant() {
	for k := range kinds {
		g := &c.qp.Session.grants[k]
		g.leave(k, c)
		g.set(&c.grants[k], 0)
		c.grants[k] = grant{count: g.count}
	}
}
