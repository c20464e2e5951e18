package datapath

import (
	"time"

	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/verbs/ib"
)

// What a connection does about congestion (IBA A17.9, package dcqcn). One whose packets arrive marked notifies its
// peer, by a CNP; one that is notified sends at a rate, requests and responses to READs alike. Datagrams do neither:
// a queue pair of them has many peers, each of which would need a rate.
//
//	a marked packet ─► noteMarked ─► a turn ─► notify
//	a CNP ─► receiveCNP ─► flow ─► holds ─► a time (deadlines) ─► expire ─► a turn
//
// Anyone who can send as the peer can slow a connection down, to the minimal rate, as long as that goes on.

// congestion is a connection's part.
type congestion struct {
	notifier dcqcn.Notifier
	flow     dcqcn.Flow

	owesCNP bool
	resume  time.Time // when a turn is due that the rate has put off; zero: none
}

// noteMarked has the peer notified of a marked packet of its own, not too often.
func (c *Connection) noteMarked() {
	e := c.engine
	if e.congestion != nil && c.notifier.Marked(e.congestion, e.round.now()) {
		c.owesCNP = true
		e.round.turns.add(c.qp)
	}
}

// notify sends the peer a notification; false if the link has no frame.
func (c *Connection) notify() bool {
	e := c.engine
	frame := c.frame(&e.tx, 0)
	if frame == nil {
		return false
	}
	c.owesCNP = false
	n := c.Template.SealCNP(frame, c.qp.Number, c.PeerQPN, c.qp.PKey, e.numbering.nextID())
	copy(frame, c.Path.ethernet[:])
	e.counters.CNPSent++
	e.counters.Sent++
	e.round.budget--
	e.tx.launch(c.qp, c.Path, frame, n, 0)
	return true
}

// receiveCNP slows the connection down.
func (c *Connection) receiveCNP(a *arrival) Drop {
	e := c.engine
	switch {
	case e.congestion == nil:
		return DropCongestion
	case !c.qp.PKey.Matches(a.packet.BTH().PKey()):
		return DropPKey
	case !c.isPeer(a):
		return DropNotPeer
	}
	c.flow.Notified(e.congestion, e.round.now())
	e.counters.CNPHandled++
	return DropNone
}

// holds says that the next packet has to wait for its time, and has the connection get a turn then. Acknowledgements
// do not wait, nor does a request's packet while no answer is asked for.
func (c *Connection) holds() bool {
	e := c.engine
	if data := c.Responder.OwesData(); !data && (c.Responder.Owes() || c.Requester.Unasked()) || !c.flow.Holds(e.congestion, e.round.now()) {
		return false
	}
	c.resume = c.flow.Next()
	e.timers.follow(c)
	return true
}

// due is when the connection has something to do; zero if there is nothing.
func (c *Connection) due() time.Time {
	return earlier(c.Requester.Deadline(), c.resume)
}

// expire is called when the connection's time has come: to send on, or to act on what was not answered.
func (c *Connection) expire() {
	now := c.engine.round.now()
	if !c.resume.IsZero() && !c.resume.After(now) {
		c.resume = time.Time{}
		c.engine.round.turns.add(c.qp)
	}
	if at := c.Requester.Deadline(); !at.IsZero() && !at.After(now) {
		c.Requester.Expire(now)
	}
	c.follow()
}

// isPeer says whether a packet is the peer's. Of those from this card only those of the queue pair that is the peer
// are: another program's can carry the same addresses and numbers.
func (c *Connection) isPeer(a *arrival) bool {
	return a.packet.Source() == c.Peer && (a.sender == 0 || a.sender == c.PeerQPN)
}

// paced says that packets are sent at a rate. What a queue pair that ends still owes leaves at once.
func (c *Connection) paced() bool {
	return c.flow.Slowed() && c.qp.State != ib.QPStateErr && c.qp.State != ib.QPStateSQE
}
