package datapath

import (
	"sync/atomic"

	"github.com/roced/roced/datapath/link"
)

// A link that has lost its queue of the interface has the first engine's link send its frames (link.XDP.SendApart). They
// go through that engine's inbox, in order. What the first link does not send, the first engine counts.
//
//	Commit ─► Flush ─► Relay ─► inbox of the first engine ─► relay ─► its link

// relays are what an engine's link sends for other links.
type relays struct{ waiting atomic.Int32 } // frames in the inbox

// Relay has the first link send frames of another. Only a card with several engines has others.
func (w *Workers) Relay() link.Relay {
	first := w.engines[0].others
	return func(frame []byte) (taken bool) {
		if first.inbox.full() {
			return false
		}
		first.relays.waiting.Add(1)
		first.inbox.put(handed{frame: frame, relayed: true})
		return true
	}
}

// Relaying is how many frames the first link has still to be given.
func (w *Workers) Relaying() int { return int(w.engines[0].others.relays.waiting.Load()) }

// relay sends a frame of another engine's link. It is not done if the link has no room.
func (o *others) relay(frame []byte) (done bool) {
	e := o.engine
	switch room := e.link.Reserve(); {
	case e.down:
		e.counters.Drops[DropLinkDown]++
	case room == nil:
		e.blocked = true // the flush makes room
		return false
	case len(frame) > len(room): // it is from before the MTU fell
		e.counters.Drops[DropPathMTU]++
	default:
		e.link.Commit(copy(room, frame))
		e.blocked = true // there is something to flush
	}
	o.relays.waiting.Add(-1)
	return true
}
