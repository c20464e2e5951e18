package datapath

import "github.com/roced/roced/datapath/wire"

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
	e.deliverGroup(a, f, frame, members, sender)
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
