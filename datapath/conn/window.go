// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"github.com/roced/roced/datapath/flight"
	"github.com/roced/roced/verbs/ib"
)

// window limits the packets in flight. A loss halves it. It grows by an eighth when a whole window has been
// acknowledged. This is fast enough for two sides that share a processor: the packets that one side sends in its time
// slice must keep the connection busy until the other side gets a time slice. The PSNs of READs do not count, as the
// peer sends those packets.
//
// All connections share the card's receive ring, so the limits of package flight bound the window too.
type window struct {
	size    uint32 // in packets
	share   uint32 // flight.Limits.Window of the last limits; size does not grow beyond it
	grant   uint32 // number of packets that may be sent now, from the last limits; 0: none
	paced   bool   // packets are sent separately, and each requests an acknowledgement; from the last limits
	arrived uint32 // number of packets acknowledged since the last growth
	unasked uint32 // number of packets sent after the last one that requests an acknowledgement
}

const (
	firstWindow = 128 // initial window, in packets, as in Soft-RoCE
	maxWindow   = 512
	minWindow   = 4
	// askGap is the number of packets of a long message between two acknowledgement requests.
	askGap = 32
)

// limit stores the limits for the next packet.
func (w *window) limit(l *flight.Limits) {
	w.share, w.grant, w.paced = uint32(l.Window), uint32(l.Grant), l.Paced
}

// of returns the window under a share.
func (w *window) of(share uint32) uint32 { return min(w.size, share) }

// now returns the window under the last share.
func (w *window) now() uint32 { return w.of(w.share) }

// arrive records that packets are acknowledged.
func (w *window) arrive(packets uint32) {
	if w.arrived += packets; w.arrived < w.now() {
		return
	}
	w.arrived = 0
	if most := min(maxWindow, w.share); w.size < most {
		w.size = min(w.size+w.size/8+1, most)
	}
}

// halve reduces the window after a loss.
func (w *window) halve() { w.size = max(w.size/2, minWindow) }

// asks reports whether the next packet, which stands for a number of packets, requests an acknowledgement although it
// does not end its message: at least two packets of each window do, and the last packet of a grant.
func (w *window) asks(packets uint32) bool {
	return w.paced || w.unasked+packets >= askGap || w.unasked+packets >= w.now()/2 || w.grant > 0 && packets >= w.grant
}

// mute reports whether no packet in flight requests an acknowledgement.
func (w *window) mute(flying int) bool { return flying <= int(w.unasked) }

// full reports whether the window is used up, and one of the packets in flight requests an acknowledgement.
func (w *window) full(flying int) bool { return flying >= int(w.now()) && !w.mute(flying) }

// Window returns the maximum number of packets in flight if the share is the given one.
func (r *Requester) Window(share uint32) uint32 { return r.window.of(share) }

// Asked returns the number of PSNs from the oldest unacknowledged one to the end of the last READ that was sent; 0 if
// no READ response is expected.
func (r *Requester) Asked() int { return max(0, r.PSN.Ahead(r.oldest)-r.Flying()) }

// Flying returns the number of packets in flight. PSNs up to the end of the last READ that was sent do not count.
func (r *Requester) Flying() int { return max(0, r.PSN.Ahead(r.afterRead)) }

// Unanswered returns the number of packets that were sent and not acknowledged, and the number of expected response
// packets. The latter includes all READs that were ever sent, since those after a loss are requested again.
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

// Responses returns the number of response packets that a described packet requests, if it is a READ request; otherwise
// 0.
func (p *Packet) Responses() int {
	if p.work.Opcode != ib.WRRDMARead {
		return 0
	}
	return int(p.psns)
}
