package datapath

import "time"

// Connections that wait for a grant (grants.go), and when they stop: a list for each kind of a session's part, first come,
// first served.

const (
	// grantPatience is how long connections wait while no grant is given: those that have some may have peers that
	// are gone, which shows only after their time-outs. It is twice as long each time that nothing is acknowledged
	// even then, at most doublings times: then the peer, or the way to it, is slow.
	grantPatience = 50 * time.Millisecond
	doublings     = 6

	// grantBudget is how many connections get something at one time.
	grantBudget = 128
)

// grants is a session's part of a kind.
type grants struct {
	granted     int    // packets on their way, or of grants and not sent yet
	count       uint32 // how often it was begun anew, since those that had room kept it
	first, last *Connection
	waiting     int       // how many they are
	since       time.Time // when the last grant was given, or the first began to wait
	vain        uint8     // how often it was begun anew since packets were acknowledged
}

// obtain gives a connection a grant of so many packets if there is room, and else has it wait.
func (g *grants) obtain(k kind, c *Connection, s share, packets int) bool {
	if g.first == nil && g.room(k, s, packets) {
		c.give(k, packets)
		return true
	}
	if c.grants[k].wants = packets; !c.grants[k].waits {
		g.wait(k, c)
	}
	return false
}

// pass is for a connection that goes without a grant. It need not wait for one.
func (g *grants) pass(k kind, c *Connection) {
	if c.grants[k].waits {
		g.leave(k, c)
		c.admitOthers()
	}
}

// room says whether there is room for another grant, of which there can always be one. For a response half of the part
// is enough.
func (g *grants) room(k kind, s share, packets int) bool {
	if k == reads {
		packets = min(packets, s.session/2)
	}
	return g.granted == 0 || g.granted+packets <= s.session
}

// set notes what is a connection's.
func (g *grants) set(one *grant, packets int) {
	if one.count != g.count {
		one.counted, one.count = 0, g.count
	}
	g.granted += packets - one.counted
	one.counted = packets
}

// admitOthers gives grants to those that wait, as far as there is room.
func (c *Connection) admitOthers() {
	for k := range kinds {
		g := &c.qp.Session.grants[k]
		for budget := grantBudget; g.first != nil && budget > 0 && g.admitFirst(k); budget-- {
		}
	}
}

// admitFirst gives the first of those that wait a grant, if there is room, and a turn. Where they are few now, that is
// all it needs.
func (g *grants) admitFirst(k kind) bool {
	c, wants := g.first, 0
	if s := c.share(); s.grant > 0 {
		if wants = c.grants[k].wants; !g.room(k, s, wants) {
			return false
		}
	}
	g.since = c.engine.now()
	g.leave(k, c)
	c.give(k, wants)
	c.engine.turns.add(c.qp)
	return true
}

// wait has a connection wait, behind the others of its session.
func (g *grants) wait(k kind, c *Connection) {
	one := &c.grants[k]
	g.waiting++
	if one.waits, one.before = true, g.last; g.last == nil {
		g.first, g.last, g.since = c, c, c.engine.now()
		c.engine.timers.follow(c)
		return
	}
	g.last.grants[k].after = c
	g.last = c
}

// leave has it not wait any more. The next one, if it is the first now, has a time.
func (g *grants) leave(k kind, c *Connection) {
	one := &c.grants[k]
	if !one.waits {
		return
	}
	g.waiting--
	before, after := one.before, one.after
	one.waits, one.before, one.after = false, nil, nil
	if after == nil {
		g.last = before
	} else {
		after.grants[k].before = before
	}
	if before != nil {
		before.grants[k].after = after
	} else if g.first = after; after != nil {
		c.engine.timers.follow(after)
	}
}

// patience is when the connection, if it is the first of those that wait, stops waiting; else zero.
func (g *grants) patience(k kind, c *Connection) (at time.Time) {
	if c.grants[k].waits && g.first == c {
		at = g.since.Add(grantPatience << g.vain)
	}
	return at
}

// impatient is when the connection stops waiting; zero if others are before it, or it does not wait.
func (c *Connection) impatient() (at time.Time) {
	for k := range kinds {
		at = earlier(at, c.qp.Session.grants[k].patience(k, c))
	}
	return at
}

// stopWaiting is for the first of those that wait, if it has waited long enough: the session begins to count anew, and
// who waited goes on without a grant, until its peer has answered. What is on its way now is counted again when it is
// acknowledged, in part.
func (c *Connection) stopWaiting(now time.Time) {
	for k := range kinds {
		g := &c.qp.Session.grants[k]
		if at := g.patience(k, c); !at.IsZero() && !at.After(now) {
			g.granted, g.since = 0, now
			g.count++
			g.vain = min(g.vain+1, doublings)
			for g.last != nil { // the last first: who is the first now would need a time
				last := g.last
				g.leave(k, last)
				c.engine.turns.add(last.qp)
			}
		}
	}
}
