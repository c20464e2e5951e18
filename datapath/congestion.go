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
//	receives a marked packet ─► noteMarked ─► a turn ─► notify
//	receives a CNP ─► receiveCNP ─► flow ─► holds ─► a deadline ─► expire ─► a turn
//
// A host that can forge packets of the peer can reduce a connection to the minimum rate for as long as it sends CNPs.

// congestion is the congestion control state of a connection.
type congestion struct {
	notifier dcqcn.Notifier
	flow     dcqcn.Flow

	owesCNP bool      // the next turn sends a CNP
	resume  time.Time // time of the next turn, if the rate limit has delayed it; zero: it has not
}

// noteMarked schedules a CNP to the peer, which has sent a marked packet, unless the last CNP was sent too recently.
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

// receiveCNP checks a CNP and reduces the connection's rate.
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

// holds reports whether the next packet must wait for the rate limit. If so, it schedules a turn for the time at which
// the limit permits the packet. Acknowledgements do not wait, and neither do request packets until one of them requests
// an acknowledgement.
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

// expire handles a passed deadline: it continues sending after a delay by the rate limit, or handles missing responses.
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

// isPeer reports whether a packet is from the peer. A packet that this card sent must come from the peer's queue pair,
// as other programs of this card could otherwise send packets with the peer's address.
func (c *Connection) isPeer(a *arrival) bool {
	return a.packet.Source() == c.Peer && (a.sender == 0 || a.sender == c.PeerQPN)
}

// paced reports whether a rate limit applies. A queue pair in ERR or SQE sends its outstanding responses at once.
func (c *Connection) paced() bool {
	return c.flow.Slowed() && c.qp.State != ib.QPStateErr && c.qp.State != ib.QPStateSQE
}
