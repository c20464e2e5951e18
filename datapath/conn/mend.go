// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Selective retransmission: the requester retransmits a lost packet without all later ones. The protocol does not
// specify whether a peer keeps out-of-order packets, but its acknowledgements show whether it does.
//
//	a NAK ────────────────────────► retransmit only the packet that it reports, with an acknowledgement request
//	no response for some RTTs ────► the same for the oldest packet: the NAK, or the last packet, was lost
//	the ACK covers more packets ──► the peer has kept the later ones: continue with new packets
//	the ACK covers this packet ───► the peer has dropped the later ones, or they were lost too: retransmit all of them
//
// If a peer does not keep packets, this costs one additional round trip, once; afterwards the requester knows it.
type mending struct {
	one     bool     // the packet with the current PSN is sent alone
	psn     wire.PSN // of the packet that was retransmitted alone
	resume  wire.PSN // the PSN to send after it
	awaited bool     // the acknowledgement of the packet sent alone is outstanding
	named   bool     // a NAK has reported that packet, so later ones have arrived at the peer
	keeps   keeping

	probes  uint8     // number of probes since the last acknowledgement
	probed  time.Time // time of the last probe
	timeout time.Time // time at which the local ACK timeout expires
}

// keeping is what the requester knows about a peer: whether it keeps out-of-order packets.
type keeping uint8

const (
	mayKeep keeping = iota
	keeps
	keepsNot
)

// mostProbes is the maximum number of probes before the timeout; the wait doubles with each.
const mostProbes = 3

// canMend reports whether a packet that a NAK reports can be retransmitted alone. The request packet of a READ cannot:
// the READ is requested again from that PSN on.
func (r *Requester) canMend(psn wire.PSN, named bool) bool {
	if !named || !r.Mends || r.keeps == keepsNot || psn.Plus(1).Ahead(r.newest) >= 0 {
		return false
	}
	at := r.works.find(psn)
	return at < r.works.count && !r.works.at(at).wantsAnswer()
}

// mend retransmits one packet alone.
func (r *Requester) mend(psn wire.PSN, named bool) {
	resume := r.PSN
	if r.one && r.resume.Ahead(resume) > 0 {
		resume = r.resume
	}
	r.PSN = psn
	r.current = r.works.find(psn)
	// Responses to a READ do not show whether the peer has kept the packets after it.
	r.awaited = r.current < r.works.count && !r.works.at(r.current).wantsAnswer()
	r.mending.one, r.mending.psn, r.mending.resume, r.named = true, psn, resume, named
	r.trip.cancel()
	r.turn = TurnNow
}

// mended resumes sending at the PSN that was current before mend.
func (r *Requester) mended() {
	if r.one = false; r.resume.Ahead(r.PSN) > 0 {
		r.PSN = r.resume
		r.current = r.works.find(r.PSN)
	}
}

// answered determines from an acknowledgement of all packets before a PSN whether the peer keeps packets. If it does
// not, or the later packets were lost too, answered retransmits them.
func (r *Requester) answered(now time.Time, before wire.PSN) {
	if !r.awaited || before.Ahead(r.mending.psn) <= 0 {
		return
	}
	r.awaited = false
	switch rest := r.newest.Ahead(before); {
	case before.Ahead(r.mending.psn) > 1:
		if r.named {
			r.keeps = keeps
		}
	case rest > 0 && r.works.count > 0:
		if r.named && r.mending.psn.Ahead(r.lastLong) >= 0 { // long packets are never kept
			r.keeps = keepsNot
		}
		r.goBack(now, before)
		r.again = true
	}
}

// refused determines the same from a sequence NAK: if it reports a later packet, the peer has kept those in between.
func (r *Requester) refused(psn wire.PSN) {
	if r.awaited && psn.Ahead(r.mending.psn) > 0 {
		if r.awaited = false; r.named && psn.Ahead(r.mending.psn) > 1 {
			r.keeps = keeps
		}
	}
}

// probe retransmits the oldest packet, with an acknowledgement request.
func (r *Requester) probe(now time.Time) {
	r.Counters.Probes++
	r.probes++
	r.probed = now
	r.mend(r.oldest, false)
	r.deadline = r.patience(now)
}

// costly reports whether a retransmission of the oldest packet would make the peer send a long part of a READ again.
func (r *Requester) costly() bool {
	if r.works.count == 0 {
		return false
	}
	w := r.works.at(0)
	return w.wantsAnswer() && w.answered < w.packets && w.partLeft(w.answered) > askGap
}
