package datapath

import "github.com/roced/roced/datapath/wire"

// fanout is the delivery of a packet to the members of a group. A group may have thousands, so a
// fanout continues in the next round when the budget ends. There are two, one for packets from the
// link and one for packets that this card sent.
type fanout struct {
	frame   []byte // borrowed, or in own, until the fanout ends
	own     []byte // a copy of a frame that is not borrowed so long
	members []*QP
	next    int // the member that gets the packet next
	sender  *QP // sent the packet; nil if another host did
}

func (f *fanout) pending() bool { return f.next < len(f.members) }

// deliver gives every member of a group its own copy, with its own checks and its own result.
// Members that the budget does not reach stay in f.
func (f *fanout) deliver(e *Engine, a *arrival, frame []byte, members []*QP, sender *QP) {
	p := &a.packet
	switch {
	case p.BTH().DestQP() != wire.QPNMulticast:
		e.counters.Drops[DropGroupQPN]++
		return
	case len(members) == 0:
		e.counters.Drops[DropNoGroup]++
		return
	}
	f.frame, f.members, f.next, f.sender = frame, members, 0, sender
	e.counters.Copies--
	f.copyOut(e, a)
}

// copyOut delivers the packet to the next members: at least to one, then while the budget lasts.
func (f *fanout) copyOut(e *Engine, a *arrival) {
	for f.pending() {
		qp := f.members[f.next]
		f.next++
		e.counters.Copies++
		if qp == f.sender && qp.NoSelfLoopback {
			e.counters.Drops[DropSelfLoopback]++
		} else {
			e.deliverTo(qp, a)
		}
		if e.budget--; e.budget <= 0 {
			return
		}
	}
}

// resume continues a fanout that an earlier round left, and reports whether there was one. The
// packet passed all its checks in that round, so parsing it cannot fail.
func (f *fanout) resume(e *Engine, a *arrival) bool {
	if !f.pending() {
		return false
	}
	a.packets = 1
	if wire.Parse(f.frame, &a.packet) == wire.FaultNone {
		f.copyOut(e, a)
	}
	return true
}

// keepMembers removes the queue pairs from a group's fanout that are no longer attached to it.
func (f *fanout) keepMembers(mgid wire.GID, members []*QP) {
	var p wire.Packet
	if !f.pending() || wire.Parse(f.frame, &p) != wire.FaultNone || p.Destination() != mgid {
		return
	}
	attached := make(map[*QP]struct{}, len(members))
	for _, qp := range members {
		attached[qp] = struct{}{}
	}
	var rest []*QP // a copy: the list is the group's
	for _, qp := range f.members[f.next:] {
		if _, ok := attached[qp]; ok {
			rest = append(rest, qp)
		}
	}
	f.members, f.next = rest, 0
}
