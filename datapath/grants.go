package datapath

import (
	"time"

	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/wire"
)

// How connections share what may be on its way. A card's share is divided among the sessions that have packets on
// their way, and a session's part among its connections as long as these are few. Many would have a few packets each:
// short trains, and an acknowledgement for every few packets. So they take turns instead, each with a grant of packets
// at a time.
//
//	a packet to send ─► admits ─► room in the session's part ─► a grant: it is sent, and those behind it
//	                           └► none: the connection waits ─► answers to others make room ─► a grant, a turn
//	                                                         └► none do for a while: who has room does not count
//
// A grant is given back as its packets are acknowledged, or when nothing is left to send. What is little does not
// wait, and neither does a packet that is sent again alone.

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

	// fewPackets is what a connection sends without a grant, if that is all it has.
	fewPackets = 8

	// grantPatience is how long connections wait while no grant is given: those that have some may have peers that
	// are gone, which shows only after their time-outs. It is twice as long each time that nothing is acknowledged
	// even then, at most doublings times: then the peer, or the way to it, is slow.
	grantPatience = 50 * time.Millisecond
	doublings     = 6

	// grantBudget is how many connections get something at one time.
	grantBudget = 128
)

// grants is a session's part.
type grants struct {
	granted     int    // packets on their way, or of grants and not sent yet
	count       uint32 // how often it was begun anew, since those that had room kept it
	first, last *Connection
	since       time.Time // when the last grant was given, or the first began to wait
	vain        uint8     // how often it was begun anew since packets were acknowledged
}

// grant is a connection's part.
type grant struct {
	size, left    int    // its packets, and those not sent
	counted       int    // what the session has counted of the connection's
	count         uint32 // the session's, when it did
	waits         bool
	before, after *Connection // that wait too
}

// share is how many packets a connection may have on their way.
type share struct {
	packets uint32 // its part
	grant   int    // how many it has at a time instead; 0: the connections are few
	session int    // the session's part
	lone    int    // what a connection may have at most
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
	if c.Long && c.engine.memory.Longest() > 0 {
		s.lone = maxFlight
	}
	sessions := c.engine.timers.flights
	if all := c.engine.timers.ofCard; all != nil {
		sessions = int(all.Load())
	}
	flights := max(1, c.qp.Session.flights)
	s.session = most / max(1, sessions)
	s.packets = uint32(min(s.lone, s.session/flights))
	if grant := min(maxGrant, s.session/minGrants); int(s.packets) < 2*grant && !c.congested && c.Timeout != 0 && c.Requester.InFlight() {
		s.grant = max(grant, fewPackets)
	}
	return s
}

// window is how many packets the connection may have on their way now, if it is granted what it has not yet.
func (c *Connection) window(s share) uint32 {
	if s.grant == 0 {
		return s.packets
	}
	left := c.grant.left
	if left == 0 {
		left = s.grant
	}
	return uint32(min(s.lone, c.Requester.Flying()+left))
}

// next describes the packet to send next. Of a grant that has been begun what a message does not fit into is given back:
// trains begin with messages, since the first packet of a WRITE is longer than those behind it.
func (c *Connection) next(s share, p *conn.Packet) conn.Step {
	step := c.Requester.Next(c.window(s), p)
	if step == conn.Ready && c.grant.left < c.grant.size && !p.Fits(c.grant.left) {
		c.returnGrant()
		step = c.Requester.Next(c.window(s), p)
	}
	return step
}

// admits says whether the packet in hand may be sent now. If not, the connection gets a turn when it may.
func (c *Connection) admits(s share, p *conn.Packet) bool {
	g := &c.qp.Session.grants
	switch {
	case s.grant == 0 || c.grant.left > 0 || p.Hurries(&c.Requester, fewPackets):
		return true
	case g.first == nil && g.room(s):
		c.give(s.grant)
		return true
	case !c.grant.waits:
		g.wait(c)
	}
	return false
}

// room says whether there is room for another grant, of which there can always be one.
func (g *grants) room(s share) bool { return g.granted == 0 || g.granted+s.grant <= s.session }

// give gives the connection a grant.
func (c *Connection) give(packets int) {
	c.grant.size, c.grant.left = packets, packets
	c.recount()
}

// spend counts a packet that has been sent.
func (c *Connection) spend(p *conn.Packet) { c.grant.left -= min(c.grant.left, int(p.Packets)) }

// recount has the session count what the connection has of its part: of one without time-out nobody would say that its
// packets are not on their way any more, and one that has failed still has their PSNs.
func (c *Connection) recount() {
	now := c.grant.left
	if c.Timeout != 0 && c.Requester.InFlight() && c.Requester.Begun() > 0 {
		now += c.Requester.Unanswered()
	}
	c.qp.Session.grants.set(c, now)
}

// set notes what is a connection's.
func (g *grants) set(c *Connection, packets int) {
	if c.grant.count != g.count {
		c.grant.counted, c.grant.count = 0, g.count
	}
	g.granted += packets - c.grant.counted
	c.grant.counted = packets
}

// followGrant is for an answer, or a time-out: it may have made room, for others.
func (c *Connection) followGrant() {
	g := &c.qp.Session.grants
	before := g.granted
	if !c.Requester.InFlight() {
		c.endGrant()
	} else if c.recount(); g.granted < before {
		g.vain = 0
	}
	c.admitOthers()
}

// returnGrant gives back what the connection does not need.
func (c *Connection) returnGrant() {
	if c.grant.left > 0 {
		c.grant.size, c.grant.left = 0, 0
		c.recount()
		c.admitOthers()
	}
}

// endGrant is for a connection that sends nothing new for now.
func (c *Connection) endGrant() {
	g := &c.qp.Session.grants
	g.leave(c)
	g.set(c, 0)
	c.grant = grant{count: g.count}
}

// admitOthers gives grants to those that wait, as far as there is room.
func (c *Connection) admitOthers() {
	g := &c.qp.Session.grants
	for budget := grantBudget; g.first != nil && budget > 0; budget-- {
		next := g.first
		s := next.share()
		if s.grant > 0 && !g.room(s) {
			return
		}
		g.since = c.engine.now()
		g.leave(next)
		next.give(s.grant)
		next.engine.turns.add(next.qp)
	}
}

// wait has a connection wait behind the others of its session.
func (g *grants) wait(c *Connection) {
	if c.grant.waits, c.grant.before = true, g.last; g.last == nil {
		g.first, g.last, g.since = c, c, c.engine.now()
		c.engine.timers.follow(c)
		return
	}
	g.last.grant.after = c
	g.last = c
}

// leave has it not wait any more. The next one, if it is the first now, has a time.
func (g *grants) leave(c *Connection) {
	if !c.grant.waits {
		return
	}
	before, after := c.grant.before, c.grant.after
	c.grant.waits, c.grant.before, c.grant.after = false, nil, nil
	if after == nil {
		g.last = before
	} else {
		after.grant.before = before
	}
	if before != nil {
		before.grant.after = after
	} else if g.first = after; after != nil {
		c.engine.timers.follow(after)
	}
}

// impatient is when the connection stops waiting; zero if another is before it, or it does not wait.
func (c *Connection) impatient() (at time.Time) {
	if g := &c.qp.Session.grants; c.grant.waits && g.first == c {
		return g.since.Add(grantPatience << g.vain)
	}
	return at
}

// stopWaiting is for the first of those that wait, which has waited long enough: the session begins to count anew. What is
// on its way now is counted again when it is acknowledged, in part.
func (c *Connection) stopWaiting() {
	g := &c.qp.Session.grants
	g.granted, g.since = 0, c.engine.now()
	g.count++
	g.vain = min(g.vain+1, doublings)
	c.admitOthers()
}
