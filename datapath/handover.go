package datapath

import (
	"errors"
	"sync/atomic"

	"github.com/roced/roced/datapath/wire"
)

// A packet that arrives at one engine of a card and is for a queue pair of another's session is handed over: copied
// into that engine's inbox, which it empties before it looks at its link. So are packets that a queue pair of one
// engine sends to a queue pair, or to members of a group, of another.
//
//	link ─► passOn ───┐                        ┌─► receiveFrame ─► as if they had come from the link
//	loopBack ─► sendAcross ─► inbox ─► receiveHanded
//	group ─► shareOut ┘                        └─► deliverHanded ─► as if they had been sent here
//
// Packets from one queue of the link to one queue pair stay in order. An inbox that is full holds up who fills it: an
// engine does not look at its link, and a sender has no free frame.

// others is what an engine knows of its card's other engines.
type others struct {
	engine *Engine
	shared *sharing
	index  int // of this engine
	inbox  inbox
	looped arrival // of a packet that another engine's queue pair has sent
	// elsewhere are the other engines with members of a group.
	elsewhere map[wire.GID][]*Engine
	waitsFor  *inbox // it was full when this engine last filled it
	relays    relays
}

func newOthers(e *Engine, shared *sharing) (*others, error) {
	o := &others{engine: e, shared: shared, index: shared.made, elsewhere: map[wire.GID][]*Engine{}}
	shared.made++
	var wake func()
	if e.memory != nil {
		wake = func() { e.runner.Arrived() }
	}
	return o, errors.Join(o.inbox.open(wake), o.relays.open(wake))
}

func (o *others) close() {
	if o != nil {
		o.inbox.close()
		o.relays.close()
	}
}

// crowded says that the inbox that was full still is. Its owner calls this engine when it is not any more.
func (o *others) crowded() bool {
	if o.waitsFor != nil && !o.waitsFor.full() {
		o.waitsFor = nil
	}
	return o.waitsFor != nil
}

// left says that there is something to do that no frame announces.
func (o *others) left() bool { return o.waitsFor != nil || o.inbox.left() || o.relays.left() }

func (o *others) setAsleep(asleep bool) {
	o.inbox.setAsleep(asleep)
	o.relays.setAsleep(asleep)
}

// full says that the inbox of the engine with a queue pair has no room.
func (o *others) full(number wire.QPN) bool {
	home := o.home(number)
	return home != nil && home.others.inbox.full()
}

// home is the other engine that has a queue pair; nil if none has, or this one.
func (o *others) home(number wire.QPN) *Engine {
	if place := o.shared.homes.of(number); place >= 0 && place != o.index {
		return o.shared.engines[place]
	}
	return nil
}

// Prefers says whether packets for a queue pair of this number come to the engine's own link, where the network goes by
// the numbers (link.Network.Ports).
func (e *Engine) Prefers(number wire.QPN) bool {
	return e.others == nil || int(number)%len(e.others.shared.engines) == e.others.index
}

// homes are the engines of queue pairs, by the low bits of their numbers.
type homes [maxQPs]atomic.Int32 // 0: none has it

// set pairs with of. The lease and the inbox of the queue pair's engine order all else.
func (h *homes) set(number wire.QPN, e *Engine) {
	place := int32(0)
	if e != nil {
		place = int32(e.others.index) + 1
	}
	h[number%maxQPs].Store(place)
}

// of is the place of the engine; -1 if there is none.
func (h *homes) of(number wire.QPN) int { return int(h[number%maxQPs].Load()) - 1 }

// passOn hands over a frame from the link, and says whether that was all: this engine has nothing to do with it. What
// is wrong with the frame is found by who gets it.
func (o *others) passOn(frame []byte) (gone bool) {
	p := &o.engine.rx.packet
	if wire.Parse(frame, p) != wire.FaultNone {
		return false
	}
	number := p.BTH().DestQP()
	if number == wire.QPNMulticast {
		dest := p.Destination()
		return o.copyAcross(o.elsewhere[dest], len(o.engine.groups[dest]) > 0, handed{frame: frame})
	}
	home := o.home(number)
	if home != nil {
		o.put(home, handed{frame: frame})
	}
	return home != nil
}

// copyAcross gives other engines a packet each. All but the first of those that get the packet get a copy of it. gone is
// false if this engine is among them.
func (o *others) copyAcross(to []*Engine, own bool, h handed) (gone bool) {
	for i, other := range to {
		h.copied = own || i > 0
		o.put(other, h)
	}
	return len(to) > 0 && !own
}

func (o *others) put(to *Engine, h handed) {
	in := &to.others.inbox
	if in.put(h); in.full() {
		o.waitsFor = in
	}
}

// sendAcross hands over a packet that is for a queue pair of another engine; false if there is none.
func (o *others) sendAcross(sender *QP, d *departure, frame []byte, length int) bool {
	if wire.Parse(frame, &d.looped.packet) != wire.FaultNone {
		return false
	}
	home := o.home(d.looped.packet.BTH().DestQP())
	if home != nil {
		o.put(home, handed{frame: frame, sender: sender, length: length})
	}
	return home != nil
}

// shareOut hands over a packet to a group to the engines with members of it.
func (o *others) shareOut(sender *QP, dest wire.GID, frame []byte, length int) {
	o.copyAcross(o.elsewhere[dest], len(o.engine.groups[dest]) > 0, handed{frame: frame, sender: sender, length: length})
}

// roomAcross says whether there is room for a datagram at the engines that it is to be handed to.
func (o *others) roomAcross(ah *AH, number wire.QPN) bool {
	for _, other := range o.elsewhere[ah.Dest] {
		if other.others.inbox.full() {
			return false
		}
	}
	return ah.Path.state != PathLocal || !o.full(number)
}

// setElsewhere replaces the other engines that have members of a group. It runs in Do.
func (o *others) setElsewhere(mgid wire.GID, engines []*Engine) {
	if o.elsewhere[mgid] = engines; len(engines) == 0 {
		delete(o.elsewhere, mgid)
	}
}

// receiveHanded processes what other engines have handed over, with half of the budget at most. ready says that frames
// of the link are next.
func (o *others) receiveHanded() (some, ready bool) {
	e := o.engine
	kept := e.budget / 2
	for e.budget -= kept; e.budget > 0; some = true {
		h := o.inbox.take()
		if h == nil {
			break
		}
		e.budget -= 1 + len(h.frame)/maxFrame
		if o.receiveOne(h); len(h.frame) > maxFrame {
			h.frame = nil // long ones are seldom handed over, and take much memory
		}
	}
	e.budget += kept
	if some && o.inbox.waited.Swap(false) {
		o.callWaiting()
	}
	return some, !e.arriving.pending() && !o.crowded()
}

// callWaiting calls the other engines: there is room in the inbox again.
func (o *others) callWaiting() {
	for i, other := range o.shared.engines {
		if i != o.index {
			other.runner.Call()
		}
	}
}

// receiveOne processes a packet that was handed over. A copy of one that another engine has counted counts as a copy.
func (o *others) receiveOne(h *handed) {
	e := o.engine
	c := &e.counters
	bytes, marked, looped := c.ReceivedBytes, c.ECNMarked, c.Loopback
	if h.copied {
		c.Received--
		c.Copies++
	}
	switch {
	case h.sender != nil:
		o.deliverHanded(h)
	case len(e.taps.list) == 0 || h.copied:
		e.receiveFrame(&e.rx, h.frame)
	default:
		e.tap(false, h.frame, func() { e.receiveFrame(&e.rx, h.frame) })
	}
	if h.copied {
		c.ReceivedBytes, c.ECNMarked, c.Loopback = bytes, marked, looped
	}
}

// deliverHanded delivers a packet that a queue pair of another engine has sent to this card.
func (o *others) deliverHanded(h *handed) {
	e, a := o.engine, &o.looped
	e.hand = nil
	if !e.parseOwn(a, h.sender, h.frame, h.length) {
		return
	}
	if a.packet.BTH().DestQP() != wire.QPNMulticast {
		e.deliver(a)
		return
	}
	e.arriving.deliver(e, a, h.frame, e.groups[a.packet.Destination()], h.sender)
}
