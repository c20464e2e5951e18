package conn

import "github.com/roced/roced/datapath/wire"

// receiveUC handles a packet of an unreliable connection (IBA 9.8.2). If earlier packets are missing, their whole
// message is dropped, and its receive request serves the next message.
func (r *Responder) receiveUC(packet *wire.Packet) Reason {
	bth := packet.BTH()
	gap := bth.PSN() != r.ExpectedPSN
	packets := r.packetsIn(packet)
	r.ExpectedPSN = bth.PSN().Plus(max(1, packets))
	first := bth.Opcode().Means().Is(wire.MeansStart)
	if gap || first {
		r.message.kind = 0
	}
	if !first && r.message.kind == 0 { // of a message whose beginning is missing or was dropped
		return OutOfSequence
	}
	reason := r.takePart(packet, packets)
	if reason != Taken {
		r.message.kind = 0
	}
	return reason
}
