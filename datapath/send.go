// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// How a connection sends, packet by packet:
//
//	next ───► Requester.Next(limits) or Responder.Next: the headers and the length of the packet
//	frame ──► the buffer in which it is built
//	fill ───► Requester.Fill or Responder.Fill: the payload
//	seal ───► headers and ICRC, counters ──► launch

// errand is the kind of packet that a connection sends next. Responses precede requests.
type errand uint8

const (
	rests    errand = iota // no packet now
	answers                // a response to the peer
	requests               // a packet of the queue pair's own requests
	flushes                // no packet any more: the requests are flushed
)

// sending is the result of sendPacket.
type sending uint8

const (
	sentOne   sending = iota
	sentNone          // no packet can be sent now
	sentLater         // the link has no free frame
)

// send sends packets until the turn or the round's budget ends.
func (c *Connection) send(d *departure) (moved, done bool) {
	e, qp := c.engine, c.qp
	defer qp.Send.Publish()
	if c.owesCNP && !c.notify() {
		return false, false
	}
	c.begin()
	defer c.flight.Settle()
	for sent := 0; sent < sendTurn; {
		if e.round.budget <= 0 || e.round.looping.pending() {
			return moved, false
		}
		errand := c.errand()
		if errand == flushes {
			some, done := qp.flush()
			return some || moved, done
		}
		d.packet.Packets = 1
		if one := c.sendPacket(d, errand); one != sentOne {
			return moved, one == sentNone
		}
		sent, e.round.budget = sent+int(d.packet.Packets), e.round.budget-int(d.packet.Packets)
		moved = true
	}
	return true, false
}

// begin determines the connection's limit of packets in flight for this turn.
func (c *Connection) begin() {
	e := c.engine
	c.flight.Begin(e.round.now(), &flight.Condition{
		Reliable: c.Reliable(), Frame: c.MTU.Bytes() + wire.MTUOverhead, Longest: c.longest(), Room: e.link.Room(),
		Memory: c.Long && e.memory.Longest() > 0, Paced: c.flow.Slowed(), Awaits: c.Timeout != 0 && c.Requester.InFlight(),
	})
}

// longest returns the maximum payload of a long packet, in bytes; 0 if long packets are not allowed.
func (c *Connection) longest() int {
	if e := c.engine; c.Long && c.Path != nil && c.Path.state == PathOpen && !e.tables.down && !c.flow.Slowed() && e.tables.carries(c.Path, c.MTU.Bytes()) {
		return e.memory.Longest()
	}
	return 0
}

// errand returns the kind of packet to send next.
func (c *Connection) errand() errand {
	switch state := c.qp.State; {
	case c.paced() && c.holds():
		return rests
	case c.Responder.Owes():
		return answers
	case state == ib.QPStateErr || state == ib.QPStateSQE:
		return flushes
	case state == ib.QPStateRTS || state == ib.QPStateSQD:
		return requests
	}
	return rests
}

// sendPacket sends the next packet of the given kind, or executes the next request that needs no packet.
func (c *Connection) sendPacket(d *departure, errand errand) sending {
	p := &d.packet
	switch c.next(p, errand) {
	case conn.Idle:
		c.flight.Idle()
		return sentNone
	case conn.Limited:
		return sentNone
	case conn.Worked:
		return sentOne
	}
	frame := c.frame(d, p.Length)
	if frame == nil {
		return sentLater
	}
	switch c.fill(p, errand, c.payload(frame, p)) {
	case conn.Idle:
		c.flight.Idle()
		return sentNone
	case conn.Worked:
		return sentOne
	}
	c.seal(d, errand, frame)
	return sentOne
}

// next describes the next packet in p.
func (c *Connection) next(p *conn.Packet, errand errand) conn.Step {
	switch errand {
	case requests:
		return c.nextRequest(p)
	case answers:
		return c.Responder.Next(c.flight.Longest(), p)
	}
	return conn.Idle
}

// nextRequest describes the next packet of the requests, if the limits allow it. Otherwise it requests a grant, and
// tries again if it receives the grant immediately.
func (c *Connection) nextRequest(p *conn.Packet) conn.Step {
	step := c.Requester.Next(c.limits(), p)
	if step == conn.Limited && c.flight.Request(p.Responses()) {
		step = c.Requester.Next(c.limits(), p)
	}
	return step
}

// limits returns the numbers of packets and responses that the connection may have in flight now.
func (c *Connection) limits() *flight.Limits {
	return c.flight.Limits(c.Requester.Flying(), c.Requester.Asked())
}

// frame returns a frame for a packet on the connection's path with a payload of length bytes; nil if the link, or the
// engine that receives the packet, has no room.
func (c *Connection) frame(d *departure, length int) []byte {
	e := c.engine
	switch {
	case c.Path.state == PathOpen && !e.tables.down:
		if length > c.MTU.Bytes() {
			return e.memory.ReserveLong()
		}
		return e.link.Reserve()
	case e.peers.Peer != nil && c.Path.state == PathLocal:
		if d.across = e.peers.Route(c.PeerQPN); d.across.Full() {
			return nil
		}
	}
	return d.frame
}

// payload returns the part of a frame that holds the packet's payload.
func (c *Connection) payload(frame []byte, p *conn.Packet) []byte {
	return frame[c.Template.PayloadOffsetOf(p.Opcode):][:p.Length]
}

// fill writes a packet's payload. It uses the time that was read when the turn began; only reliable connections need
// it.
func (c *Connection) fill(p *conn.Packet, errand errand, payload []byte) conn.Step {
	if errand == requests {
		begins := c.Reliable() && c.Requester.Begins()
		step := c.Requester.Fill(c.engine.round.time, p, payload)
		if begins && step == conn.Ready {
			c.engine.timers.follow(c)
		}
		return step
	}
	if reason := c.Responder.Fill(p, payload); reason != conn.Taken {
		c.engine.counters.Drops[drops[reason]]++
		return conn.Worked
	}
	return conn.Ready
}

// seal writes a packet's headers and ICRC around its payload, counts the packet and sends it.
func (c *Connection) seal(d *departure, errand errand, frame []byte) {
	e := c.engine
	p := &d.packet
	p.DestQP, p.SourceQP, p.PKey, p.ID = c.PeerQPN, c.qp.Number, c.qp.PKey, e.numbering.nextID()
	n := c.Template.SealTransport(frame, &p.Transport, p.Length)
	copy(frame, c.Path.ethernet[:])
	e.counters.Sent += uint64(p.Packets)
	e.counters.SentBytes += uint64(p.Length)
	if c.qp.tally != nil {
		c.qp.tally.sent(uint64(p.Packets), p.Length)
	}
	if p.Length > 0 && c.flow.Slowed() {
		c.flow.Sent(e.congestion, e.round.now(), n)
	}
	if errand == requests {
		c.flight.Sent(int(p.Packets), n, p.Responses())
	}
	// The path's MTU limits each packet that a long packet stands for, not the long packet.
	d.launch(c.qp, c.Path, frame, n, min(p.Length, c.MTU.Bytes()))
	if errand == requests && !c.Reliable() {
		c.Requester.Sent()
	}
}

// replyLast sends the outstanding responses of a queue pair that is reset or removed: its program may have received a
// message and ended the queue pair before the message was acknowledged.
func (c *Connection) replyLast() {
	if !c.Responder.Owes() {
		return
	}
	e, sent := c.engine, 0
	c.begin()
	for sent < sendTurn && c.Responder.Owes() {
		e.tx.packet.Packets = 1
		if c.sendPacket(&e.tx, answers) != sentOne {
			break
		}
		sent += int(e.tx.packet.Packets)
	}
	if sent > 0 {
		e.flushLink()
	}
}
