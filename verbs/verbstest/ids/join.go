// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var joinTests = []rig.Test{
	{Name: "ids: a group", Run: idGroup},
	{Name: "ids: joins refused", Run: idJoinsRefused},
	{Name: "ids: join flags are librdmacm's", Run: idJoinFlags},
	{Name: "ids: joined twice", Run: idJoinedTwice},
	{Name: "ids: left before the event", Run: idLeftEarly},
	{Name: "ids: send-only members", Run: idSendOnly},
	{Name: "ids: many, created, joined and closed", Run: idMany},
}

// memberID returns an id that is bound to an address of the station, and its queue pair.
func (e *idEnd) memberID(own netip.Addr) (*cm.ID, *verbs.QP) {
	e.Helper()
	id := e.id(cm.PortSpaceUDP)
	rig.Check(e, id.Bind(port(own, 0)))
	qp, err := id.CreateQP(e.PD, &verbs.QPInitAttr{SendCQ: e.CQ, RecvCQ: e.CQ, Cap: rig.DefaultCap()})
	rig.Check(e, err)
	return id, qp
}

// toGroupOf sends the message in a slot to the group of an event.
func (e *idEnd) toGroupOf(qp *verbs.QP, event *cm.Event, slot int) {
	e.Helper()
	ah, err := e.PD.CreateAH(rig.Guard(e), &event.AH)
	rig.Check(e, err)
	copy(e.Slot(slot), "to the group")
	rig.Check(e, qp.PostSend([]verbs.SendWR{{
		Opcode: verbs.WRSend, ID: 99, SGList: []verbs.SGE{e.Piece(slot, 12)}, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: event.QPN, RemoteQKey: event.QKey,
	}}))
	e.Expect(rig.OK(99))
	rig.Check(e, ah.Close())
}

// idGroup checks that a member of a group can send and receive.
func idGroup(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	for _, row := range []struct{ group, ownA, ownB netip.Addr }{
		{rig.GroupV4, w.A.End.IPv4, w.B.End.IPv4}, {rig.GroupV6, w.A.End.IPv6, w.B.End.IPv6}, {rig.GroupV6, w.A.End.IPv4, w.B.End.IPv4}, // the last row's senders have the other IP version
	} {
		sender, from := a.memberID(row.ownA)
		receiver, to := b.memberID(row.ownB)
		rig.Check(t, receiver.JoinMulticast(row.group, cm.JoinStateFullMember, "receiver's"))
		rig.Check(t, sender.JoinMulticastEx(cm.JoinAttr{Mask: cm.JoinAttrAddress | cm.JoinAttrFlags, Flags: cm.JoinSendOnlyFullMember, Address: row.group}, 7))
		if event := b.event(receiver, cm.EventMulticastJoin); event.Context != "receiver's" || event.Err() != nil {
			t.Errorf("%+v", event)
		}
		event := a.event(sender, cm.EventMulticastJoin)
		if event.Context != 7 || event.QPN != verbs.MulticastQPN || event.QKey != verbs.UDPQKey || event.AH.GRH.HopLimit != 64 || event.AH.GRH.DGID != rig.GID(row.group) {
			t.Errorf("%+v", event)
		}
		b.ReceiveOn(to, 0)
		a.toGroupOf(from, event, 1)
		rig.CheckGroup(t, w.B, w.B.Expect(rig.OK(0))[0], row.group, from)
		rig.Check(t, receiver.LeaveMulticast(row.group))
		b.ReceiveOn(to, 0)
		a.toGroupOf(from, event, 1)
		w.Settle()
		rig.Same(t, rig.Completions(t, w.B.CQ)) // the queue pair is detached
		rig.Check(t, receiver.DestroyQP())
		rig.Check(t, receiver.Close())
		rig.Check(t, sender.DestroyQP())
		rig.Check(t, sender.Close())
	}
}

// idJoinFlags checks the join flags of rdma_join_multicast_ex(3): 0 joins as a full member, whose queue pair is
// attached, and 1 as a send-only member. The kernel's join states differ: 1 is a full member.
func idJoinFlags(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id, qp := e.memberID(w.A.End.IPv4)
	attached := func() bool { return qp.DetachMcast(rig.GID(rig.GroupV4), 0) == nil }
	for flags, full := range map[cm.JoinFlags]bool{0: true, 1: false} {
		rig.Check(t, id.JoinMulticastEx(cm.JoinAttr{Mask: cm.JoinAttrAddress | cm.JoinAttrFlags, Flags: flags, Address: rig.GroupV4}, nil))
		e.event(id, cm.EventMulticastJoin)
		if attached() != full {
			t.Errorf("flags %d: attached: %v", flags, !full)
		}
		rig.Check(t, id.LeaveMulticast(rig.GroupV4))
	}
	for state, full := range map[cm.JoinState]bool{
		1: true, 2: true, 4: false, 8: false, 12: false, cm.JoinStateFullMember | cm.JoinStateSendOnlyFullMember: true,
	} {
		rig.Check(t, id.JoinMulticast(rig.GroupV4, state, nil))
		e.event(id, cm.EventMulticastJoin)
		if attached() != full {
			t.Errorf("state %v: attached: %v", state, !full)
		}
		rig.Check(t, id.LeaveMulticast(rig.GroupV4))
	}
	for _, state := range []cm.JoinState{0, 16, 17} {
		rig.Refused(t, id.JoinMulticast(rig.GroupV4, state, nil), unix.EINVAL, "join state")
	}
}

func idJoinsRefused(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id, _ := e.memberID(w.A.End.IPv4)
	const both = cm.JoinAttrAddress | cm.JoinAttrFlags
	for _, row := range []struct {
		attr cm.JoinAttr
		want error
	}{
		{cm.JoinAttr{Flags: 1, Address: rig.GroupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: cm.JoinAttrAddress, Flags: 1, Address: rig.GroupV4}, unix.EINVAL},
		{cm.JoinAttr{Mask: cm.JoinAttrFlags, Flags: 1, Address: rig.GroupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: both | 4, Flags: 1, Address: rig.GroupV4}, unix.EOPNOTSUPP},
		{cm.JoinAttr{Mask: both, Flags: 2, Address: rig.GroupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: both, Flags: 3, Address: rig.GroupV4}, unix.EINVAL},
		{cm.JoinAttr{Mask: both, Flags: 4, Address: rig.GroupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: both, Flags: 1, Address: w.B.End.IPv4}, unix.EINVAL},
		{cm.JoinAttr{Mask: both, Flags: 1}, unix.EINVAL}, {cm.JoinAttr{Mask: both, Flags: 1, Address: netip.IPv4Unspecified()}, unix.EINVAL},
	} {
		rig.Refused(t, id.JoinMulticastEx(row.attr, nil), row.want)
	}
	rig.Refused(t, id.LeaveMulticast(rig.GroupV4), unix.EADDRNOTAVAIL)
	rig.Check(t, id.DestroyQP())
	rig.Check(t, id.Close())
}

// idJoinedTwice joins a group twice. LeaveMulticast leaves the last membership first, and the queue pair stays attached
// until the first is left.
func idJoinedTwice(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	id, qp := b.memberID(w.B.End.IPv4)
	sender, from := a.memberID(w.A.End.IPv4)
	for n := range 2 {
		rig.Check(t, id.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, n))
		if event := b.event(id, cm.EventMulticastJoin); event.Context != n {
			t.Errorf("join %d: %+v", n, event)
		}
	}
	rig.Check(t, sender.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, nil))
	event := a.event(sender, cm.EventMulticastJoin)
	rig.Check(t, id.LeaveMulticast(rig.GroupV4))
	b.ReceiveOn(qp, 0)
	a.toGroupOf(from, event, 1)
	rig.CheckGroup(t, w.B, w.B.Expect(rig.OK(0))[0], rig.GroupV4, from)
	rig.Check(t, id.LeaveMulticast(rig.GroupV4))
	rig.Refused(t, id.LeaveMulticast(rig.GroupV4), unix.EADDRNOTAVAIL)
	rig.Refused(t, qp.DetachMcast(rig.GID(rig.GroupV4), 0), unix.EINVAL) // leaving has already detached it
	rig.Check(t, id.DestroyQP())
	rig.Check(t, id.Close())
	rig.Check(t, sender.DestroyQP()) // it is attached
	rig.Check(t, sender.Close())
}

// idLeftEarly checks that leaving a group before the join's event is read discards the event and attaches no queue
// pair.
func idLeftEarly(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	id, qp := e.memberID(w.A.End.IPv4)
	for range 20 {
		rig.Check(t, id.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, "left"))
		rig.Check(t, id.LeaveMulticast(rig.GroupV4))
	}
	rig.Check(t, id.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, "joined"))
	if event := e.event(id, cm.EventMulticastJoin); event.Context != "joined" {
		t.Errorf("%+v", event)
	}
	rig.Check(t, id.LeaveMulticast(rig.GroupV4))
	rig.Refused(t, qp.DetachMcast(rig.GID(rig.GroupV4), 0), unix.EINVAL)
	rig.Check(t, id.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, "never got"))
	rig.Check(t, id.DestroyQP())
	rig.Check(t, id.Close())
}

// idSendOnly checks that a send-only member's messages reach the full members, and that its queue pair is not attached.
func idSendOnly(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	sender, from := a.memberID(w.A.End.IPv4)
	receiver, to := b.memberID(w.B.End.IPv4)
	rig.Check(t, receiver.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, nil))
	b.event(receiver, cm.EventMulticastJoin)
	rig.Check(t, sender.JoinMulticastEx(cm.JoinAttr{Mask: cm.JoinAttrAddress | cm.JoinAttrFlags, Flags: cm.JoinSendOnlyFullMember, Address: rig.GroupV4}, nil))
	event := a.event(sender, cm.EventMulticastJoin)
	rig.Refused(t, from.DetachMcast(rig.GID(rig.GroupV4), 0), unix.EINVAL)
	b.ReceiveOn(to, 0)
	a.ReceiveOn(from, 5)
	a.toGroupOf(from, event, 1)
	w.B.Expect(rig.OK(0))
	w.Settle()
	rig.Same(t, rig.Completions(t, w.A.CQ))
	rig.Check(t, sender.LeaveMulticast(rig.GroupV4))
}

// idMany creates, joins and closes many ids: a leaked object would make a later one fail.
func idMany(t *testing.T, w *rig.World) {
	e := newIDEnd(w.A)
	for range 100 {
		id := e.id(cm.PortSpaceUDP)
		rig.Check(t, id.Bind(port(w.A.End.IPv4, 0)))
		rig.Check(t, id.JoinMulticast(rig.GroupV4, cm.JoinStateFullMember, nil))
		rig.Check(t, id.Close())
	}
	rig.Check(t, e.channel.Close())
}
