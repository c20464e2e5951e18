package datapath

import "github.com/roced/roced/datapath/wire"

// receiveUC takes a packet of an unreliable connection (IBA 9.8.2). If packets before it are missing, the
// message that they belong to is dropped whole, and its receive takes the next message.
func (e *Engine) receiveUC(qp *QP, a *arrival) Drop {
	c, bth := qp.Connection, a.packet.BTH()
	gap := bth.PSN() != c.ExpectedPSN
	c.ExpectedPSN = plus(bth.PSN(), 1)
	first := bth.Opcode().Means().Is(wire.MeansStart)
	if gap || first {
		c.message.kind = 0
	}
	if !first && c.message.kind == 0 { // of a message whose beginning is missing, or was dropped
		return DropOutOfSequence
	}
	reason := e.takePart(qp, a)
	if reason != DropNone {
		c.message.kind = 0
	}
	return reason
}
