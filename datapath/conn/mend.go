package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// How a requester has less sent again than everything from a lost packet on. Nothing in the protocol says whether a
// peer keeps what is ahead of a packet that it misses; what it acknowledges does.
//
//	a NAK ─────────────────────► only the packet that it names is sent again, and an answer asked for
//	no answer for some RTTs ───► likewise the oldest: the NAK, or the last packet, was lost
//	the answer is for more ────► the peer had the rest: on with what is new
//	the answer is for this one ► the peer has dropped the rest, or it was lost too: back, and all of it again
//
// A peer that keeps nothing costs one round trip, once: then it is known.
type mending struct {
	one     bool     // the packet that has the PSN is sent alone
	psn     wire.PSN // of the packet that was sent again alone
	resume  wire.PSN // that is sent after it
	awaited bool     // an answer to it is awaited
	named   bool     // a NAK has named it: what is behind it has arrived there
	keeps   keeping

	probes  uint8 // packets sent again before the specification's time-out, since something was acknowledged
	probed  time.Time
	timeout time.Time // when that time-out ends
}

// keeping is what is known of a peer: whether it keeps what is ahead of a packet that it misses.
type keeping uint8

const (
	mayKeep keeping = iota
	keeps
	keepsNot
)

// mostProbes is how often a packet is sent again before the time-out; each waits twice as long.
const mostProbes = 3

// canMend says that a packet that a NAK names is sent again alone. A READ is asked for again from there: its responses
// are the peer's to send.
func (r *Requester) canMend(psn wire.PSN, named bool) bool {
	if !named || !r.Mends || r.keeps == keepsNot || psn.Plus(1).Ahead(r.newest) >= 0 {
		return false
	}
	at := r.works.find(psn)
	return at < r.works.count && !r.works.at(at).wantsAnswer()
}

// mend has one packet sent again, alone.
func (r *Requester) mend(psn wire.PSN, named bool) {
	resume := r.PSN
	if r.one && r.resume.Ahead(resume) > 0 {
		resume = r.resume
	}
	r.PSN = psn
	r.current = r.works.find(psn)
	// Responses to a READ say nothing of what is behind it.
	r.awaited = r.current < r.works.count && !r.works.at(r.current).wantsAnswer()
	r.mending.one, r.mending.psn, r.mending.resume, r.named = true, psn, resume, named
	r.trip.cancel()
	r.turn = TurnNow
}

// mended goes on with what was to be sent before.
func (r *Requester) mended() {
	if r.one = false; r.resume.Ahead(r.PSN) > 0 {
		r.PSN = r.resume
		r.current = r.works.find(r.PSN)
	}
}

// answered looks what an acknowledgement of all packets before one says of the peer.
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
		if r.named && r.mending.psn.Ahead(r.lastLong) >= 0 { // long ones are never kept
			r.keeps = keepsNot
		}
		r.goBack(now, before)
		r.again = true
	}
}

// refused looks what a NAK says of the peer: one that misses a packet further on had those between.
func (r *Requester) refused(psn wire.PSN) {
	if r.awaited && psn.Ahead(r.mending.psn) > 0 {
		if r.awaited = false; r.named && psn.Ahead(r.mending.psn) > 1 {
			r.keeps = keeps
		}
	}
}

// probe has the oldest packet sent again, and the peer say what it has.
func (r *Requester) probe(now time.Time) {
	r.Counters.Probes++
	r.probes++
	r.probed = now
	r.mend(r.oldest, false)
	r.deadline = r.patience(now)
}

// timeTrips measures how long answers take: that to the packet which leaves next. Of a READ, whose responses come
// without being asked for one by one, it is one of those that come soon.
func (r *Requester) timeTrips(now time.Time) {
	r.trip.end(r.oldest, now)
	switch {
	case r.oldest == r.newest: // nobody knows when the next packet leaves
		r.trip.cancel()
		return
	case r.runs:
		return
	}
	next := r.newest
	if soon := r.oldest.Plus(askGap); r.works.count > 0 && r.works.at(0).wantsAnswer() && soon.Ahead(next) < 0 {
		next = soon
	}
	r.trip.begin(next, now)
}

// patience is until when an answer is awaited: until the specification's time-out, or as long as answers usually take.
func (r *Requester) patience(now time.Time) time.Time {
	if r.usual > 0 && r.probes < mostProbes && !r.costly() {
		if at := now.Add(r.usual << r.probes); at.Before(r.timeout) {
			return at
		}
	}
	return r.timeout
}

// costly says that to ask for the oldest packet again would have the peer send much: the rest of a long part of a READ.
func (r *Requester) costly() bool {
	if r.works.count == 0 {
		return false
	}
	w := r.works.at(0)
	return w.wantsAnswer() && w.answered < w.packets && w.partLeft(w.answered) > askGap
}
