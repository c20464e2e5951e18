package datapath

import (
	"sync/atomic"

	"github.com/roced/roced/datapath/link"
)

// A link that has lost its queue of the interface has the first engine's link send its frames (link.XDP.SendApart), in
// order. They have an inbox of their own: if the first link cannot send, what is handed over is received all the same.
// What the first link does not send, the first engine counts.
//
//	Commit ─► Flush ─► Relay ─► relays of the first engine ─► sendRelayed ─► its link

// relays are what an engine's link is to send for other links.
type relays struct {
	inbox
	given, done atomic.Uint64 // frames, since the card was opened
}

// Relay has the first link send frames of another. Only a card with several engines has others.
func (w *Workers) Relay() link.Relay {
	r := &w.engines[0].others.relays
	return func(frame []byte) (taken bool) {
		if r.full() {
			return false
		}
		r.given.Add(1)
		r.put(handed{frame: frame})
		return true
	}
}

// Relayed is how many frames other links have given to the first one, and with how many of these it is done.
func (w *Workers) Relayed() (given, done uint64) {
	r := &w.engines[0].others.relays
	return r.given.Load(), r.done.Load()
}

// sendRelayed sends frames of other engines' links, as many as a round sends requests at most.
func (o *others) sendRelayed() (some bool) {
	r := &o.relays
	for range sendBudget {
		h := r.take()
		if h == nil {
			break
		}
		if !o.sendFor(h.frame) {
			r.next-- // again in the next round
			break
		}
		r.done.Add(1)
		some = true
	}
	if some && r.waited.Swap(false) {
		o.callWaiting()
	}
	return some
}

// sendFor sends a frame of another engine's link. It is not done if the link has no room.
func (o *others) sendFor(frame []byte) (done bool) {
	e := o.engine
	if e.down {
		e.counters.Drops[DropLinkDown]++
		return true
	}
	e.blocked = true // there is something to flush, or the flush makes room
	room := e.link.Reserve()
	if room == nil {
		return false
	}
	if len(frame) > len(room) {
		e.counters.Drops[DropPathMTU]++
		return true
	}
	e.link.Commit(copy(room, frame))
	return true
}
