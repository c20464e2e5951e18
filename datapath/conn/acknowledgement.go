// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Handling of acknowledgements by the requester (IBA 9.7.3 to 9.7.5). An acknowledgement covers all earlier requests. A
// response to a READ or an atomic is an acknowledgement too; see readresponse.go.

// Receive handles an ACK, a NAK, or a response to a READ or an atomic.
func (r *Requester) Receive(now time.Time, p *wire.Packet) (reason Reason) {
	bth := p.BTH()
	if r.state != ib.QPStateRTS && r.state != ib.QPStateSQD {
		return QPState
	}
	response, packets := !bth.Opcode().Means().Is(wire.MeansAcknowledge), r.packetsIn(p)
	switch psn := bth.PSN(); {
	case psn.Ahead(r.oldest) < 0 || psn.Ahead(r.newest) >= 0:
		reason = StrayAnswer
	case response:
		reason = r.receiveResponse(now, psn, p, packets)
	default:
		reason = r.receiveACK(now, psn, p.AETH().Syndrome())
	}
	if response {
		r.heard(now, uint64(max(1, packets)), reason)
	}
	r.Queue.Publish()
	return reason
}

// heard handles the timer when a response has arrived. An unexpected response shows that the peer is still responding
// to earlier requests, and will respond to the others afterwards. A retransmission now would only make it send more
// responses, so the timer is restarted, at most once for each requested response.
func (r *Requester) heard(now time.Time, packets uint64, reason Reason) {
	if r.asked == 0 {
		return
	}
	r.asked -= min(packets, r.asked)
	if reason != Taken && !r.rnrWait && !r.deadline.IsZero() {
		r.startTimer(now)
	}
}

func (r *Requester) receiveACK(now time.Time, psn wire.PSN, s wire.Syndrome) Reason {
	switch s.Kind() {
	case wire.SyndromeACK:
		r.acknowledge(now, psn.Plus(1))
		r.answered(now, psn.Plus(1))
		return Taken
	case wire.SyndromeRNR:
		r.acknowledge(now, psn)
		r.Counters.RNRNAKs++
		return r.waitReady(now, s)
	case wire.SyndromeNAK:
		r.acknowledge(now, psn)
		if s == wire.NAKSequence {
			r.refused(psn)
			r.Counters.SequenceNAKs++
			r.lost(now, psn, true)
			return Taken
		}
	}
	status, known := refusals[s]
	if !known || r.works.count == 0 {
		return StrayAnswer
	}
	r.fail(status)
	return Taken
}

// refusals are the completion statuses of NAKs (IBA table 62).
var refusals = map[wire.Syndrome]ib.WCStatus{
	wire.NAKInvalidRequest: ib.WCRemInvReqErr, wire.NAKRemoteAccess: ib.WCRemAccessErr, wire.NAKRemoteOperational: ib.WCRemOpErr,
}

// acknowledge records that the peer has received all packets before a PSN, and completes their requests. It stops at a
// READ or an atomic whose response is missing, and handles the loss of that response.
func (r *Requester) acknowledge(now time.Time, before wire.PSN) {
	from := r.oldest
	for r.works.count > 0 {
		w := r.works.at(0)
		if w.status != ib.WCSuccess || before.Ahead(w.missing()) <= 0 {
			break
		}
		if w.wantsAnswer() {
			r.move(w.missing())
			r.moved(now, from)
			r.lost(now, w.missing(), false)
			return
		}
		if before.Ahead(w.end()) < 0 {
			break
		}
		r.move(w.end())
		r.finish(ib.WCSuccess)
	}
	r.move(before)
	r.moved(now, from)
}

// move advances the oldest PSN.
func (r *Requester) move(to wire.PSN) {
	packets := to.Ahead(r.oldest)
	if packets <= 0 {
		return
	}
	r.oldest, r.again = to, false
	if r.afterRead.Ahead(to) < 0 {
		r.afterRead = to
	}
	if r.PSN.Ahead(to) < 0 { // packets that were to be retransmitted are acknowledged
		r.PSN = to
		r.current = r.works.find(to)
		if r.one {
			r.mended()
		}
	}
	r.window.arrive(uint32(packets))
}

// moved restarts the timer if the oldest PSN has advanced.
func (r *Requester) moved(now time.Time, from wire.PSN) {
	if r.oldest == from {
		return
	}
	if r.probes > 0 {
		r.trip.doubt(now.Sub(r.probed))
		r.probes = 0
	}
	if r.Mends {
		r.timeTrips(now)
	}
	r.refreshRetries()
	r.rnrWait, r.silent = false, false
	r.startTimer(now)
	r.turn = TurnNow
}
