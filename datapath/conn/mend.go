// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Selective retransmission: the requester retransmits less than everything from a lost packet on. The protocol does not
// specify whether a peer keeps packets that arrive ahead of a missing one; its acknowledgements show it.
//
//	a NAK ────────────────────────► only the packet that it reports is retransmitted, with an acknowledgement request
//	no response for some RTTs ────► the same for the oldest packet: the NAK, or the last packet, was lost
//	the ACK covers more packets ──► the peer had the others: continue with new packets
//	the ACK covers this packet ───► the peer has dropped the others, or they were lost too: retransmit all of them
//
// A peer that keeps no packets costs one additional round trip, once; afterwards its behaviour is known.
type mending struct {
	one     bool     // the packet with the current PSN is sent alone
	psn     wire.PSN // of the packet that was retransmitted alone
	resume  wire.PSN // the PSN to send after it
	awaited bool     // its acknowledgement is awaited
	named   bool     // a NAK has reported it: packets behind it have arrived at the peer
	keeps   keeping

	probes  uint8 // early retransmissions since the last acknowledgement
	probed  time.Time
	timeout time.Time // when the specified timeout expires
}

// keeping is the knowledge about a peer: whether it keeps packets that arrive ahead of a missing one.
type keeping uint8

const (
	mayKeep keeping = iota
	keeps
	keepsNot
)

// mostProbes is the maximum number of retransmissions before the timeout; each waits twice as long.
const mostProbes = 3

// canMend reports whether a packet that a NAK reports is retransmitted alone. A READ is requested again from there on:
// its responses are sent by the peer.
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
	// Responses to a READ do not show whether the packets behind it were kept.
	r.awaited = r.current < r.works.count && !r.works.at(r.current).wantsAnswer()
	r.mending.one, r.mending.psn, r.mending.resume, r.named = true, psn, resume, named
	r.trip.cancel()
	r.turn = TurnNow
}

// mended resumes sending at the PSN before mend.
func (r *Requester) mended() {
	if r.one = false; r.resume.Ahead(r.PSN) > 0 {
		r.PSN = r.resume
		r.current = r.works.find(r.PSN)
	}
}

// answered derives from an acknowledgement of all packets before a PSN whether the peer keeps packets.
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

// refused derives the same from a NAK: if the missing packet is a later one, the peer had those in between.
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
