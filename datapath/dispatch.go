package datapath

import "github.com/roced/roced/datapath/wire"

// dispatch lets a packet go the way that its path goes now.
func (e *Engine) dispatch(d *departure, path *Path, frame []byte, n, length int) {
	switch {
	case path.state == PathLocal:
		e.loopBack(d, frame[:n], length)
	case e.down: // before what follows from it
		e.counters.Drops[DropLinkDown]++
	case path.state == PathUnreachable:
		e.counters.Drops[DropUnreachable]++
	case path.mtu != 0 && length > path.mtu:
		e.counters.Drops[DropPathMTU]++
	case path.state == PathResolving:
		e.hold(path, frame[:n])
	default:
		e.link.Commit(n)
	}
}

// loopBack delivers a packet to this device by the receiver's ladder: XDP never
// sees what the host itself sends.
func (e *Engine) loopBack(d *departure, frame []byte, length int) {
	if e.parseOwn(&d.looped, frame, length) {
		e.deliver(&d.looped)
	}
}

// loopBackGroup delivers a packet to those members of its group that are on this
// device; the wire gets it too, so that what is left for later rounds is a copy.
func (e *Engine) loopBackGroup(d *departure, frame []byte, length int, members []*QP, sender *QP) {
	if len(members) == 0 || !e.parseOwn(&d.looped, frame, length) {
		return
	}
	f := &e.looping
	if e.deliverGroup(&d.looped, f, frame, members, sender); f.pending() {
		f.frame = d.frame[:copy(d.frame, frame)]
	}
}

// parseOwn counts a packet that this device sends to itself, and parses it: that
// it is right in itself is known.
func (e *Engine) parseOwn(a *arrival, frame []byte, length int) bool {
	e.counters.Loopback++
	e.counters.Received++
	e.counters.ReceivedBytes += uint64(length)
	fault := wire.Parse(frame, &a.packet)
	if fault != wire.FaultNone {
		e.counters.Drops[faultDrop(fault)]++
	}
	return fault == wire.FaultNone
}
