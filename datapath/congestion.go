// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"time"

	"github.com/roced/roced/datapath/conn/dcqcn"
	"github.com/roced/roced/verbs/ib"
)

// Congestion control of connections (IBA A17.9, package dcqcn). A connection that receives marked packets notifies its
// peer with a CNP. A connection that receives CNPs limits its rate of requests and READ responses. Datagrams have no
// congestion control: their queue pair has many peers, each of which would need its own rate.
//
//	a marked packet ─► noteMarked ─► a turn ─► notify
//	a CNP ─► receiveCNP ─► flow ─► holds ─► a deadline ─► expire ─► a turn
//
// A host that can forge the peer's packets can slow a connection down to the minimum rate, for as long as it sends
// CNPs.

// congestion is the congestion control state of a connection.
type congestion struct {
	notifier dcqcn.Notifier
	flow     dcqcn.Flow

	owesCNP bool
	resume  time.Time // time of a turn that the rate limit has delayed; zero: none
}

// noteMarked arranges a notification of the peer about its marked packet, at a limited frequency.
func (c *Connection) noteMarked() {
	e := c.engine
	if e.congestion != nil && c.notifier.Marked(e.congestion, e.round.now()) {
		c.owesCNP = true
		e.round.turns.add(c.qp)
	}
}

// notify sends a CNP to the peer; false if the link has no free frame.
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

// receiveCNP reduces the connection's rate.
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

// holds reports whether the next packet must wait for the rate limit, and if so arranges a turn for that time.
// Acknowledgements do not wait, and neither do request packets while no acknowledgement is requested.
func (c *Connection) holds() bool {
	e := c.engine
	if data := c.Responder.OwesData(); !data && (c.Responder.Owes() || c.Requester.Unasked()) || !c.flow.Holds(e.congestion, e.round.now()) {
		return false
	}
	c.resume = c.flow.Next()
	e.timers.follow(c)
	return true
}

// due returns the time of the connection's next action; zero if none is due.
func (c *Connection) due() time.Time {
	return earlier(c.Requester.Deadline(), c.resume)
}

// expire is called when the connection's deadline has passed: to continue sending, or to handle missing responses.
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

// isPeer reports whether a packet is from the peer. A packet from this card must come from the peer's queue pair: other
// programs can send packets with the same addresses and numbers.
func (c *Connection) isPeer(a *arrival) bool {
	return a.packet.Source() == c.Peer && (a.sender == 0 || a.sender == c.PeerQPN)
}

// paced reports whether a rate limit applies. A queue pair in ERR or SQE sends its outstanding responses at once.
func (c *Connection) paced() bool {
	return c.flow.Slowed() && c.qp.State != ib.QPStateErr && c.qp.State != ib.QPStateSQE
}
