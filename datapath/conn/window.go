package conn

import "github.com/roced/roced/datapath/ring"

// window bounds how many packets are on their way. A loss halves it, and it grows by an eighth with each window
// that arrives: where the two sides share processors, what one of them sends in its slice lasts until the other has
// one. The PSNs of READs do not count: their packets are the peer's.
//
// What a card's receive ring has room for is shared by those that send; so who drives a requester gives it a
// share, which bounds the window too, except below the smallest.
type window struct {
	size    uint32 // packets
	share   uint32 // at the last look. The window does not grow beyond it
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

// of is the window under a share.
func (w *window) of(share uint32) uint32 { return min(w.size, max(minWindow, share)) }

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

// asks says whether the next packet, which stands for so many, asks for an acknowledgement, wherever in its message it is.
func (w *window) asks(packets uint32) bool {
	return w.unasked+packets >= askGap || w.unasked+packets >= w.now()/2
}

// windowFull says that as many packets are on their way as may be. It is not full while no answer to any of them
// is asked for.
func (r *Requester) windowFull() bool {
	flying := r.Flying()
	return flying >= int(r.window.now()) && flying > int(r.unasked)
}

// windowRoom is how many more packets may be on their way, at least one.
func (r *Requester) windowRoom() uint32 {
	return uint32(max(1, int(r.window.now())-r.Flying()))
}

// Window is how many packets may be on their way under a share.
func (r *Requester) Window(share uint32) uint32 { return r.window.of(share) }

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
		if reads -= w.outstanding(r.newest); w.Opcode == ring.WRRDMARead {
			coming += w.askedBefore(r.newest)
			sent -= w.askedBefore(next)
		}
	}
	return max(0, sent), coming
}

// Responses is how many packets the peer answers with to one that Next has described, if that is a READ; else 0.
func (p *Packet) Responses() int {
	if p.work.Opcode != ring.WRRDMARead {
		return 0
	}
	return int(p.psns)
}

// Hurries says of a packet that Next has described that it should not wait for packets of others: it is sent again
// alone, it is an atomic, or few packets are on their way and left.
func (p *Packet) Hurries(r *Requester, few int) bool {
	w := p.work
	if r.one || w.atomic() {
		return true
	}
	left := int(w.packets - p.place)
	return r.Flying()+left <= few && r.current+1 == r.works.count && r.Queue.Behind(r.works.count) == 0
}

// Again says that a packet that Next has described was sent before.
func (p *Packet) Again(r *Requester) bool { return r.newest.Ahead(p.PSN) > 0 }

// Fits says whether a packet that Next has described, and those behind it of its message if it is the first, are at most
// so many. The packets of a READ are the peer's.
func (p *Packet) Fits(packets int) bool {
	return p.place > 0 || p.Responses() > 0 || int(p.work.packets) <= packets
}
