package datapath

import "github.com/roced/roced/datapath/wire"

// fanout is a packet to a group on its way to the members: a group may have thousands,
// so what a round's budget leaves goes on in the next one. Received packets and those of
// this device have one each.
type fanout struct {
	frame  []byte // borrowed, or in the engine's scratch, until the fan-out is over
	mgid   wire.GID
	rest   []*QP // members to come
	sender *QP   // who sent the packet, nil for another host's
}

func (f *fanout) pending() bool { return len(f.rest) > 0 }

// deliverGroup gives every member of a group its own copy, with its own checks
// and its own outcome; those that the budget leaves stay in f.
func (e *Engine) deliverGroup(a *arrival, f *fanout, frame []byte, members []*QP, sender *QP) {
	p := &a.packet
	switch {
	case p.BTH().DestQP() != wire.QPNMulticast:
		e.counters.Drops[DropGroupQPN]++
		return
	case len(members) == 0:
		e.counters.Drops[DropNoGroup]++
		return
	}
	f.frame, f.rest, f.sender = frame, members, sender
	e.counters.Copies--
	if e.copyOut(a, f); f.pending() {
		f.mgid = p.Destination()
	}
}

// copyOut delivers the packet to the next members, at least one.
func (e *Engine) copyOut(a *arrival, f *fanout) {
	for i, qp := range f.rest {
		e.counters.Copies++
		if qp == f.sender && qp.NoSelfLoopback {
			e.counters.Drops[DropSelfLoopback]++
		} else {
			e.deliverTo(qp, a)
		}
		if e.budget--; e.budget <= 0 {
			f.rest = f.rest[i+1:]
			return
		}
	}
	f.rest = nil
}

// resume goes on with a fan-out that an earlier round left, and reports whether there
// was one. The packet was found right then.
func (e *Engine) resume(a *arrival, f *fanout) bool {
	if !f.pending() {
		return false
	}
	if wire.Parse(f.frame, &a.packet) == wire.FaultNone {
		e.copyOut(a, f)
	}
	return true
}

// keepMembers takes those out of a group's fan-out that are attached no more.
func (f *fanout) keepMembers(mgid wire.GID, members []*QP) {
	if !f.pending() || f.mgid != mgid {
		return
	}
	attached := make(map[*QP]struct{}, len(members))
	for _, qp := range members {
		attached[qp] = struct{}{}
	}
	var rest []*QP // a copy: others may hold the list
	for _, qp := range f.rest {
		if _, ok := attached[qp]; ok {
			rest = append(rest, qp)
		}
	}
	f.rest = rest
}
