// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// The methods of Connection in this file implement conn.QueuePair, which the requester and the responder use.

// Memory implements conn.QueuePair.
func (c *Connection) Memory(sge ib.SGE, offset, length int, write bool) (piece []byte, n int, ok bool) {
	return c.qp.Session.Find(sge, offset, length, c.qp.PD, write)
}

// WriteRecv implements conn.QueuePair.
func (c *Connection) WriteRecv(list ring.SGList, offset int, payload []byte) bool {
	p, s, pd := &c.engine.pieces, c.qp.Session, c.qp.RecvPD
	if c.target != nil {
		s, pd = c.target.Session, c.target.PD
	}
	ok := p.Find(&s.Table, list, pd, true, offset, len(payload))
	switch {
	case ok:
		p.Scatter(0, payload)
	case p.Signed:
		return s.MoveAll(list, pd, offset, payload)
	}
	return ok
}

// Target implements conn.QueuePair.
func (c *Connection) Target(number wire.SRQN) bool {
	c.target = c.qp.Domain.srq(number)
	if c.target != nil && c.target.Session.faulted { // its memory may fault again
		c.target = nil
	}
	if c.target != nil {
		c.engine.round.hand = c.target.Session
	}
	return c.target != nil
}

// keysOf returns the session and PD in which the peer's keys are looked up: those of the queue pair, or of the SRQ that
// the packet addresses (IBA A14).
func (c *Connection) keysOf() (*Session, region.PD) {
	if c.target != nil {
		return c.target.Session, c.target.PD
	}
	return c.qp.Session, c.qp.PD
}

// Remote implements conn.QueuePair. It looks the key up for each packet, so that a key that was revoked during a
// message grants no further access.
func (c *Connection) Remote(key ib.RKey, addr uint64, length uint32, access ib.AccessFlags) (memory []byte, ok bool) {
	s, pd := c.keysOf()
	return s.Remote(c.qp, pd, key, addr, length, access)
}

// Bind implements conn.QueuePair.
func (c *Connection) Bind(key ib.RKey, addr uint64, b ring.Bind) ib.WCStatus {
	return c.qp.Session.Bind(c.qp, c.qp.PD, key, addr, b)
}

// Move implements conn.QueuePair.
func (c *Connection) Move(sge ib.SGE, offset int, bytes []byte, write bool) bool {
	return c.qp.Session.Move(sge, offset, bytes, write)
}

// MoveRemote implements conn.QueuePair.
func (c *Connection) MoveRemote(key ib.RKey, addr uint64, bytes []byte, write bool) bool {
	s, _ := c.keysOf()
	return s.MoveRemote(key, addr, bytes, write)
}

// Register implements conn.QueuePair.
func (c *Connection) Register(key ib.RKey, base uint64, r ring.Reg, signed bool) ib.WCStatus {
	return c.qp.Session.Register(c.qp.PD, key, base, r, signed)
}

// Invalidate implements conn.QueuePair.
func (c *Connection) Invalidate(key ib.RKey, peer bool) bool {
	s, pd := c.keysOf()
	return s.Invalidate(c.qp, pd, key, peer)
}

// TakeRecv implements conn.QueuePair: it consumes a receive request of the queue pair, of its SRQ or of its target's
// SRQ.
func (c *Connection) TakeRecv(r *ring.Recv) bool {
	if c.target != nil {
		return c.engine.completions.takeFrom(c.target, r)
	}
	qp := c.qp
	if !qp.Recv.Peek(r) && !qp.SRQ.peekNewer(r) {
		return false
	}
	qp.Recv.Advance()
	if qp.SRQ != nil {
		c.engine.completions.took(qp.SRQ)
	}
	return true
}

// Credits implements conn.QueuePair. An SRQ grants no credits, as other peers consume its receive requests too.
func (c *Connection) Credits() wire.Syndrome {
	if c.qp.SRQ != nil || c.qp.Domain != nil {
		return wire.AckUncounted
	}
	return wire.AckCredits(c.qp.Recv.Waiting())
}

// CompleteSend implements conn.QueuePair.
func (c *Connection) CompleteSend(done conn.Completion) {
	cqe := &c.engine.completions.cqe
	cqe.Set(done.ID, done.Status, done.Opcode, c.qp.Number, c.qp.CompletionToken)
	cqe.ByteLen = done.ByteLen
	c.engine.completions.complete(c.qp.SendCQ, cqe, done.Solicited)
}

// CompleteRecv implements conn.QueuePair.
func (c *Connection) CompleteRecv(done conn.Completion) bool {
	cqe, cq, token := &c.engine.completions.cqe, c.qp.RecvCQ, c.qp.CompletionToken
	if c.target != nil {
		cq, token = c.target.CQ, c.target.CompletionToken
	}
	cqe.Set(done.ID, done.Status, done.Opcode, c.qp.Number, token)
	if done.Status == ib.WCSuccess {
		cqe.Flags, cqe.ByteLen, cqe.Imm, cqe.SourceQP, cqe.Port = done.Flags, done.ByteLen, done.Imm, c.PeerQPN, 1
	}
	whole := c.engine.completions.complete(cq, cqe, done.Solicited)
	if !whole && c.target != nil { // the queue pair is not in the QPs of the target's CQ
		c.qp.fail(true)
	}
	return whole
}

// Fail implements conn.QueuePair. A queue pair that an overrun of its CQ has moved to ERR does not move to SQE.
func (c *Connection) Fail(state ib.QPState) {
	if state == ib.QPStateErr {
		c.qp.fail(false)
	} else if c.qp.State != ib.QPStateErr {
		c.qp.stopSending()
	}
}

// Note implements conn.QueuePair.
func (c *Connection) Note(event ib.EventType) { c.qp.NoteEvent(event) }
