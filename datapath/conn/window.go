package conn

import (
	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/verbs/ib"
)

// window bounds how many packets are on their way. A loss halves it, and it grows by an eighth with each window
// that arrives: where the two sides share processors, what one of them sends in its slice lasts until the other has
// one. The PSNs of READs do not count: their packets are the peer's.
//
// What a card's receive ring has room for is shared by those that send: the limits of package flight bound the window
// too.
type window struct {
	size    uint32 // packets
	share   uint32 // the window of the last limits; this one does not grow beyond it
	grant   uint32 // packets that may be sent now, likewise; 0: no more
	paced   bool   // likewise: packets leave one by one, and each asks for an acknowledgement
	arrived uint32 // packets acknowledged since it grew
	unasked uint32 // packets since the last that asked for an acknowledgement
}

const (
	firstWindow = 128 // packets, as Soft-RoCE's
	maxWindow   = 512
	minWindow   = 4
	// askGap is after how many packets of a long message an acknowledgement is asked for.
	askGap = 32
)

// limit has the limits bound the window.
func (w *window) limit(l *flight.Limits) {
	w.share, w.grant, w.paced = uint32(l.Window), uint32(l.Grant), l.Paced
}

// of is the window under a share.
func (w *window) of(share uint32) uint32 { return min(w.size, share) }

// now is the window under the share at the last look.
func (w *window) now() uint32 { return w.of(w.share) }

// arrive notes that packets are acknowledged.
func (w *window) arrive(packets uint32) {
	if w.arrived += packets; w.arrived < w.now() {
		return
	}
	w.arrived = 0
	if most := min(maxWindow, w.share); w.size < most {
		w.size = min(w.size+w.size/8+1, most)
	}
}

// halve is for a loss.
func (w *window) halve() { w.size = max(w.size/2, minWindow) }

// asks says whether the next packet, which stands for so many, asks for an acknowledgement, wherever in its message it is:
// some do in each window, and the last of a grant does.
func (w *window) asks(packets uint32) bool {
	return w.paced || w.unasked+packets >= askGap || w.unasked+packets >= w.now()/2 || w.grant > 0 && packets >= w.grant
}

// mute reports whether none of the packets in flight requests an acknowledgement.
func (w *window) mute(flying int) bool { return flying <= int(w.unasked) }

// full reports whether as many packets are in flight as may be, and one of them requests an acknowledgement.
func (w *window) full(flying int) bool { return flying >= int(w.now()) && !w.mute(flying) }

// Window is how many packets may be on their way under a share.
func (r *Requester) Window(share uint32) uint32 { return r.window.of(share) }

// Asked is how many PSNs are from the oldest that is not acknowledged to where the last READ that was sent ends: 0 if no
// response is to come.
func (r *Requester) Asked() int { return max(0, r.PSN.Ahead(r.oldest)-r.Flying()) }

// Flying is how many packets are on their way. The PSNs of READs do not count, nor those before one that is sent again.
func (r *Requester) Flying() int { return max(0, r.PSN.Ahead(r.afterRead)) }

// Unanswered is how many packets were sent and are not acknowledged, and how many of responses are to come: of all READs
// that were ever sent, since what is behind a loss is asked for again.
func (r *Requester) Unanswered() (sent, coming int) {
	next := r.PSN
	if r.one && r.resume.Ahead(next) > 0 {
		next = r.resume
	}
	sent = next.Ahead(r.oldest)
	for i, reads := uint32(0), r.reads; i < r.works.count && reads > 0; i++ {
		w := r.works.at(i)
		if reads -= w.outstanding(r.newest); w.Opcode == ib.WRRDMARead {
			coming += w.askedBefore(r.newest)
			sent -= w.askedBefore(next)
		}
	}
	return max(0, sent), coming
}

// Responses is how many packets the peer answers with to one that Next has described, if that is a READ; else 0.
func (p *Packet) Responses() int {
	if p.work.Opcode != ib.WRRDMARead {
		return 0
	}
	return int(p.psns)
}
