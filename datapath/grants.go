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
//	                                                         └► nothing for a while ─► its part, as of few; a turn
//
// A grant is given back as its packets are acknowledged, or when nothing is left to send. What is little does not
// wait, and neither does what has been sent before.

const (
	// maxFlight is how many packets a card's connections have on their way: half of what a card's receive ring
	// holds.
	maxFlight = 1024

	// maxFrames is how many of these one connection has where frames, and not bytes, bound what a peer's link takes
	// in: the ring of a veth has 256. Long packets need few.
	maxFrames = 128

	// maxGrant is the most packets of a grant: two that ask for an acknowledgement, see conn's window.
	maxGrant = 64

	// minGrants is how many connections have a grant at least, so that some send while others are acknowledged.
	minGrants = 4

	// fewPackets is what a connection sends without a grant, if that is all it has.
	fewPackets = 4

	// grantPatience is how long connections wait while no grant is given: those that have some may have peers that
	// are gone, which shows only after their time-outs.
	grantPatience = 50 * time.Millisecond
)

// grants is a session's part.
type grants struct {
	granted     int // packets on their way, or of grants and not sent yet
	first, last *Connection
	since       time.Time // when the last grant was given, or the first began to wait
}

// grant is a connection's part.
type grant struct {
	left          int // packets that it has and has not sent
	counted       int // what the session has counted of the connection's
	waits         bool
	before, after *Connection // that wait too
}

// share is how many packets a connection may have on their way.
type share struct {
	packets uint32 // its part
	grant   int    // how many it has at a time instead; 0: the connections are few
	session int    // the session's part
}

// share is the connection's. One that has a rate, or whose peer is not ready or has not answered in time, takes no
// turns: it would keep others waiting.
func (c *Connection) share() (s share) {
	if !c.Reliable() {
		return share{packets: maxFlight}
	}
	most, lone := maxFlight, maxFrames
	if room := c.engine.link.Room(); room > 0 {
		most = min(most, room/(c.MTU.Bytes()+wire.MTUOverhead))
		lone = most
	}
	if c.Long && c.engine.memory.Longest() > 0 {
		lone = maxFlight
	}
	sessions := c.engine.timers.flights
	if all := c.engine.timers.ofCard; all != nil {
		sessions = int(all.Load())
	}
	flights := max(1, c.qp.Session.flights)
	s.session = most / max(1, sessions)
	s.packets = uint32(min(lone, s.session/flights))
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
	return uint32(c.Requester.Flying() + left)
}

// admits says whether the packet in hand may be sent now. If not, the connection gets a turn when it may.
func (c *Connection) admits(s share, p *conn.Packet) bool {
	g := &c.qp.Session.grants
	if c.grant.left < s.grant && !p.Fits(c.grant.left) { // trains begin with messages: the first packet of a WRITE is longer
		c.returnGrant()
	}
	switch {
	case s.grant == 0 || c.grant.left > 0 || c.Requester.Hurries(p, fewPackets):
		return true
	case g.first == nil && g.room(s):
		c.give(s.grant)
		return true
	case !c.grant.waits:
		c.wait()
	}
	return false
}

// room says whether there is room for another grant, of which there can always be one.
func (g *grants) room(s share) bool { return g.granted == 0 || g.granted+s.grant <= s.session }

// give gives the connection a grant.
func (c *Connection) give(packets int) {
	c.grant.left = packets
	c.recount()
}

// spend counts a packet that has been sent.
func (c *Connection) spend(p *conn.Packet) { c.grant.left -= min(c.grant.left, int(p.Packets)) }

// recount has the session count what the connection has of its part. Nobody says when packets have arrived of one that
// has no time-out, and whose peer is gone.
func (c *Connection) recount() {
	now := c.grant.left
	if c.Timeout != 0 && c.Requester.InFlight() {
		now += c.Requester.Flying()
	}
	c.qp.Session.granted += now - c.grant.counted
	c.grant.counted = now
}

// followGrant is for an answer, or a time-out: it may have made room, for others.
func (c *Connection) followGrant() {
	if !c.Requester.InFlight() {
		c.endGrant()
	}
	c.recount()
	c.admitOthers()
}

// returnGrant gives back what the connection does not need.
func (c *Connection) returnGrant() {
	if c.grant.left > 0 {
		c.grant.left = 0
		c.recount()
		c.admitOthers()
	}
}

// endGrant is for a connection that sends nothing new for now. What it leaves to others they find in time.
func (c *Connection) endGrant() {
	c.leave()
	c.qp.Session.granted -= c.grant.counted
	c.grant = grant{}
}

// admitOthers gives grants to those that wait, as far as there is room.
func (c *Connection) admitOthers() {
	g := &c.qp.Session.grants
	for g.first != nil {
		next := g.first
		s := next.share()
		if s.grant > 0 && !g.room(s) {
			return
		}
		g.since = c.engine.now()
		next.leave()
		next.give(s.grant)
		next.engine.turns.add(next.qp)
	}
}

// wait has the connection wait behind the others of its session.
func (c *Connection) wait() {
	g := &c.qp.Session.grants
	if c.grant.waits, c.grant.before = true, g.last; g.last == nil {
		g.first, g.last, g.since = c, c, c.engine.now()
		c.engine.timers.follow(c)
		return
	}
	g.last.grant.after = c
	g.last = c
}

// leave has it not wait any more. The next one, if it is the first now, has a time.
func (c *Connection) leave() {
	if !c.grant.waits {
		return
	}
	g, before, after := &c.qp.Session.grants, c.grant.before, c.grant.after
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
		return g.since.Add(grantPatience)
	}
	return at
}

// stopWaiting is for one that has waited long enough: it has what it would have if all divided, and at least one packet,
// since nobody may have been asked to acknowledge those before.
func (c *Connection) stopWaiting() {
	c.leave()
	c.give(max(1, int(c.share().packets)-c.Requester.Flying()))
	c.engine.turns.add(c.qp)
}
