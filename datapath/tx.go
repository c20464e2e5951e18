package datapath

import (
	"github.com/roced/roced/datapath/conn"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// departure is the scratch of sending: the request in hand and the packet made of it.
type departure struct {
	send     ring.Send
	pieces   region.Pieces // the request's memory
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

// launch shows a packet of n bytes to those who look on, and dispatches it.
func (e *Engine) launch(qp *QP, d *departure, path *Path, frame []byte, n, length int) {
	if len(e.taps.list) == 0 {
		e.dispatch(qp, d, path, frame, n, length)
	} else {
		e.tap(true, frame[:n], func() { e.dispatch(qp, d, path, frame, n, length) })
	}
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
	case !e.carries(path, length): // a connection's MTU is from before the port's fell
		e.counters.Drops[DropPathMTU]++
		if c, is := qp.service.(*Connection); is {
			c.NoteTooLong()
		}
	case path.state == PathResolving:
		path.hold(e, frame[:n])
	default:
		e.link.Commit(n)
	}
}

// carries says whether a path, and the port, carry packets with payloads of a length.
func (t *tables) carries(path *Path, length int) bool {
	return length <= t.mtu && (path.mtu == 0 || length <= path.mtu)
}
