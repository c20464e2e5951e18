package datapath

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// Connection is what a connected queue pair (RC, UC) knows of its peer, and how far the two are. The
// control plane sets the exported fields in Do: those of the peer before RTR, the others at any time.
//
//	            requester.go   requests → packets (segment.go), again from one that was lost ──►
//	program ──► works.go       requests that are sent and not completed
//	            answers.go     ACK, NAK, READ and atomic responses → completions    ◄──
//	            responder.go   requests → memory, receives, completions             ◄──
//	program ◄── message.go     the SEND or WRITE in hand
//	            replies.go     ACK, NAK, READ and atomic responses                  ──►
type Connection struct {
	Service  wire.Service // ServiceRC or ServiceUC
	PeerQPN  wire.QPN
	Peer     wire.GID // whose packets are taken
	Path     *Path
	Template wire.Template // without Ethernet addresses: those are in Path
	MTU      wire.MTU      // of the path

	Access          ring.AccessFlags // what the peer may do: remote read, write, atomic
	ExpectedPSN     wire.PSN         // of the next request from the peer; set before RTR
	MinRNRTimer     uint8            // code of 5 bits that a peer is told when no receive is posted
	MaxDestRDAtomic uint8            // reads and atomics of the peer's that may be outstanding here

	Timeout     uint8 // 4.096 µs × 2ⁿ; 0 is for ever
	RetryCnt    uint8 // 0 to 7
	RNRRetry    uint8 // 0 to 7; 7 is for ever
	MaxRDAtomic uint8 // own reads and atomics that may be outstanding

	NotifyDrained bool // send EventSQDrained in SQD when what was begun is finished

	established bool // EventCommEst has been sent
	requester
	responder
}

// ahead is how far a PSN is ahead of another: negative if it is behind. Half of the 2²⁴ numbers are
// ahead, half behind (IBA 9.7.1).
func ahead(psn, of wire.PSN) int { return int(int32((psn-of)<<8) >> 8) }

// plus is the PSN n packets after another.
func plus(psn wire.PSN, n uint32) wire.PSN { return (psn + wire.PSN(n)) & wire.PSNMask }

// reliable says that packets are acknowledged.
func (c *Connection) reliable() bool { return c.Service == wire.ServiceRC }

// enter begins what a state is for. The state in the queue pair is still the old one.
func (e *Engine) enter(qp *QP, state ring.QPState) {
	c := qp.Connection
	switch {
	case state == ring.QPStateReset:
		if !qp.Session.faulted {
			e.replyLast(qp)
		}
		e.timers.stop(qp)
		c.requester, c.responder, c.established = requester{}, responder{}, false
	case state == ring.QPStateRTS && qp.State == ring.QPStateRTR:
		c.begin(qp.PSN)
	case state == ring.QPStateErr || state == ring.QPStateSQE: // what was begun is flushed with the rest
		e.timers.stop(qp)
		c.cut(0)
	case state == ring.QPStateSQD && qp.State != state:
		c.draining = c.NotifyDrained
	}
}

// receiveConnected checks a packet in this order: state, service, P_Key, peer. What it is decides which
// half takes it. Of packets from this card only those of the queue pair that is the peer count: another
// program's can carry the same addresses and numbers, and its keys and PSNs are soon guessed.
func (e *Engine) receiveConnected(qp *QP, a *arrival) Drop {
	c, bth := qp.Connection, a.packet.BTH()
	switch {
	case !qp.State.Receives():
		return DropQPState
	case bth.Opcode() == wire.OpcodeCNP:
		return DropCongestion
	case bth.Opcode().Service() != c.Service:
		return DropUnsupported
	case !qp.PKey.Matches(bth.PKey()):
		return DropPKey
	case a.packet.Source() != c.Peer, a.sender != nil && a.sender.Number != c.PeerQPN:
		return DropNotPeer
	}
	if qp.State == ring.QPStateRTR && !c.established {
		c.established = true
		qp.NoteEvent(ring.EventCommEst)
	}
	switch {
	case c.Service == wire.ServiceUC:
		return e.receiveUC(qp, a)
	case bth.Opcode().Means().Is(wire.MeansAnswer):
		return e.receiveAnswer(qp, a)
	}
	return e.receiveRequest(qp, a)
}

// sendConnected is sendSome for a connected queue pair: it sends packets, answers first.
func (e *Engine) sendConnected(qp *QP, d *departure) (moved, done bool) {
	defer qp.Send.Publish()
	for range sendTurn {
		if e.budget <= 0 || e.looping.pending() {
			return moved, false
		}
		switch e.sendPacket(qp, d) {
		case sentNone:
			return moved, true
		case sentLater:
			return moved, false
		case sentFlushed:
			some, done := e.flush(qp, d)
			return some || moved, done
		}
		e.budget--
		moved = true
	}
	return true, false
}

// sending is what came of the next packet of a queue pair.
type sending uint8

const (
	sentOne     sending = iota
	sentNone            // there is none now
	sentLater           // the link has no free frame
	sentFlushed         // what is posted is to be flushed
)

// sendPacket sends an answer, or a packet of a request.
func (e *Engine) sendPacket(qp *QP, d *departure) sending {
	switch {
	case qp.replies.pending > 0 || qp.replies.due:
		return e.reply(qp, d)
	case qp.State == ring.QPStateErr || qp.State == ring.QPStateSQE:
		return sentFlushed
	case qp.State == ring.QPStateRTS || qp.State == ring.QPStateSQD:
		return e.sendRequest(qp, d)
	}
	return sentNone
}

// frameTo gives a frame for a packet along the connection's path; nil if the link has none that is free.
func (e *Engine) frameTo(c *Connection, d *departure) []byte {
	if c.Path.state == PathOpen && !e.down {
		return e.link.Reserve()
	}
	return d.frame
}

// sealConnected writes headers and ICRC of the packet in hand around its payload, and sends it.
func (e *Engine) sealConnected(qp *QP, d *departure, frame []byte, length int) {
	c, h := qp.Connection, &d.transport
	h.DestQP, h.SourceQP, h.PKey, h.ID = c.PeerQPN, qp.Number, qp.PKey, e.id
	e.id++
	n := c.Template.SealTransport(frame, h, length)
	copy(frame, c.Path.ethernet[:])
	e.counters.Sent++
	e.counters.SentBytes += uint64(length)
	if len(e.taps) == 0 {
		e.dispatch(qp, d, c.Path, frame, n, length)
	} else {
		e.tap(true, frame[:n], func() { e.dispatch(qp, d, c.Path, frame, n, length) })
	}
}
