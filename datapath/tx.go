package datapath

import (
	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// departure is the scratch of sending: the request in hand and the packet made of it.
type departure struct {
	send     ring.Send
	pieces   pieces // the request's memory
	datagram wire.Datagram
	packet   conn.Packet // of a connection
	frame    []byte      // packets that the link does not take are built here
	looped   arrival     // of a packet that this card sends to itself
}

// transmit sends requests of the queue pairs whose doorbells were rung, flushes the link once, and
// reports whether anything was done. All queue pairs share the round's budget; they take turns,
// also across rounds.
func (e *Engine) transmit() (moved bool) {
	e.budget, e.hand = sendBudget, nil
	resumed, rung := e.looping.resume(e, &e.tx.looped), e.collect(e.budget)
	moved = resumed || rung
	visits := e.budget // also bounds visits to queue pairs that have nothing to send
	for ; visits > 0 && e.budget > 0 && !e.looping.pending(); visits-- {
		qp := e.turns.next()
		if qp == nil {
			break
		}
		some, done := e.sendSome(qp, &e.tx)
		if moved = moved || some || done; !done {
			e.turns.add(qp)
		}
	}
	if moved || !e.turns.empty() || e.blocked {
		moved = e.flushLink() || moved
	}
	return moved
}

// flushLink flushes the link, and reports whether that unblocked it.
func (e *Engine) flushLink() (unblocked bool) {
	was := e.blocked
	e.hand = nil
	e.blocked = !e.link.Flush() && !e.down // a link that is down is tried again after SetLink
	e.counters.Drops[DropLinkDown] += uint64(e.link.TakenBack())
	if refused := e.link.Refused(); refused > 0 {
		e.counters.Drops[DropInterface] += uint64(refused)
		e.noteRefused()
	}
	return was && !e.blocked
}

// sendSome sends requests of one queue pair. It is done when the queue is empty or the state of the
// queue pair holds it back. It also stops, not done, when the queue pair's turn or the round's
// budget ends, or when the link has no free frame.
func (e *Engine) sendSome(qp *QP, d *departure) (moved, done bool) {
	e.hand = qp.Session
	return qp.service.send(d)
}

// dispatch sends a packet as its path says, or counts why not.
func (e *Engine) dispatch(qp *QP, d *departure, path *Path, frame []byte, n, length int) {
	switch {
	case path.state == PathLocal:
		e.loopBack(qp, d, frame[:n], length)
	case e.down: // the neighbour may have failed only because of this
		e.counters.Drops[DropLinkDown]++
	case path.state == PathUnreachable:
		e.counters.Drops[DropUnreachable]++
	case path.mtu != 0 && length > path.mtu, length > e.mtu: // a connection's MTU is from before the port's fell
		e.counters.Drops[DropPathMTU]++
	case path.state == PathResolving:
		e.hold(path, frame[:n])
	default:
		e.link.Commit(n)
	}
}

// loopBack delivers a packet that is for this card itself: XDP never sees what the host sends. Its sender is
// known, whatever its headers say.
func (e *Engine) loopBack(sender *QP, d *departure, frame []byte, length int) {
	if e.parseOwn(&d.looped, sender, frame, length) {
		e.deliverOwn(&d.looped)
		e.hand = sender.Session
	}
}

// deliverOwn is deliver for a packet that this card sends to itself. What goes wrong there is not the sender's.
func (e *Engine) deliverOwn(a *arrival) {
	defer e.contain()
	e.deliver(a)
}

// loopBackGroup delivers a packet to the members of its group on this card. The frame also goes
// out on the link, and the next packet may be built in it, so later rounds work on a copy.
func (e *Engine) loopBackGroup(d *departure, frame []byte, length int, members []*QP, sender *QP) {
	if len(members) == 0 || !e.parseOwn(&d.looped, sender, frame, length) {
		return
	}
	f := &e.looping
	e.deliverOwnGroup(&d.looped, f, frame, members, sender)
	e.hand = sender.Session
	if f.pending() {
		f.own = append(f.own[:0], frame...)
		f.frame = f.own
	}
}

func (e *Engine) deliverOwnGroup(a *arrival, f *fanout, frame []byte, members []*QP, sender *QP) {
	defer e.contain()
	f.deliver(e, a, frame, members, sender)
}

// parseOwn counts and parses a packet that this card sends to itself. Its ICRC needs no check.
func (e *Engine) parseOwn(a *arrival, sender *QP, frame []byte, length int) bool {
	a.sender = sender
	e.counters.Loopback++
	e.counters.Received++
	e.counters.ReceivedBytes += uint64(length)
	fault := wire.Parse(frame, &a.packet)
	if fault != wire.FaultNone {
		e.counters.Drops[faultDrop(fault)]++
	}
	return fault == wire.FaultNone
}
