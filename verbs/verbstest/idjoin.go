package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

var idJoinTests = []test{
	{name: "ids: a group", run: idGroup},
	{name: "ids: joins refused", run: idJoinsRefused},
	{name: "ids: joined twice", run: idJoinedTwice},
	{name: "ids: left before the event", run: idLeftEarly},
	{name: "ids: send-only members", run: idSendOnly},
	{name: "ids: many, created, joined and closed", run: idMany},
}

// memberID is an id with a queue pair, bound to the station's address of a kind.
func (e *idEnd) memberID(own netip.Addr) (*cm.ID, *verbs.QP) {
	e.Helper()
	id := e.id(cm.PortSpaceUDP)
	check(e, id.Bind(port(own, 0)))
	qp, err := id.CreateQP(e.pd, &verbs.QPInitAttr{SendCQ: e.cq, RecvCQ: e.cq, Cap: defaultCap()})
	check(e, err)
	return id, qp
}

// toGroupOf sends what lies in a slot to the group of an event.
func (e *idEnd) toGroupOf(qp *verbs.QP, event *cm.Event, slot int) {
	e.Helper()
	ah, err := e.pd.CreateAH(guard(e), &event.AH)
	check(e, err)
	copy(e.slot(slot), "to the group")
	check(e, qp.PostSend([]verbs.SendWR{{
		Opcode: verbs.WRSend, ID: 99, SGList: []verbs.SGE{e.piece(slot, 12)}, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: event.QPN, RemoteQKey: event.QKey,
	}}))
	e.expect(ok(99))
	check(e, ah.Close())
}

// idGroup: a program joins, and has what it needs to send and to receive.
func idGroup(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	for _, row := range []struct{ group, ownA, ownB netip.Addr }{
		{groupV4, w.a.end.IPv4, w.b.end.IPv4}, {groupV6, w.a.end.IPv6, w.b.end.IPv6}, {groupV6, w.a.end.IPv4, w.b.end.IPv4}, // of the other version
	} {
		sender, from := a.memberID(row.ownA)
		receiver, to := b.memberID(row.ownB)
		check(t, receiver.JoinMulticast(row.group, "receiver's"))
		check(t, sender.JoinMulticastEx(cm.JoinAttr{Mask: cm.JoinAttrAddress | cm.JoinAttrFlags, Flags: cm.JoinSendOnlyFullMember, Address: row.group}, 7))
		if event := b.event(receiver, cm.EventMulticastJoin); event.Context != "receiver's" || event.Err() != nil {
			t.Errorf("%+v", event)
		}
		event := a.event(sender, cm.EventMulticastJoin)
		if event.Context != 7 || event.QPN != verbs.MulticastQPN || event.QKey != verbs.UDPQKey || event.AH.GRH.DGID != gid(row.group) {
			t.Errorf("%+v", event)
		}
		b.receiveOn(to, 0)
		a.toGroupOf(from, event, 1)
		checkGroup(t, w.b, w.b.expect(ok(0))[0], row.group, from)
		check(t, receiver.LeaveMulticast(row.group))
		b.receiveOn(to, 0)
		a.toGroupOf(from, event, 1)
		w.settle()
		same(t, completions(t, w.b.cq)) // it is detached
		check(t, receiver.DestroyQP())
		check(t, receiver.Close())
		check(t, sender.DestroyQP())
		check(t, sender.Close())
	}
}

func idJoinsRefused(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	id, _ := e.memberID(w.a.end.IPv4)
	const both = cm.JoinAttrAddress | cm.JoinAttrFlags
	for _, row := range []struct {
		attr cm.JoinAttr
		want error
	}{
		{cm.JoinAttr{Flags: 1, Address: groupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: cm.JoinAttrAddress, Flags: 1, Address: groupV4}, unix.EINVAL},
		{cm.JoinAttr{Mask: cm.JoinAttrFlags, Flags: 1, Address: groupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: both | 4, Flags: 1, Address: groupV4}, unix.EOPNOTSUPP},
		{cm.JoinAttr{Mask: both, Address: groupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: both, Flags: 3, Address: groupV4}, unix.EINVAL},
		{cm.JoinAttr{Mask: both, Flags: 4, Address: groupV4}, unix.EINVAL}, {cm.JoinAttr{Mask: both, Flags: 1, Address: w.b.end.IPv4}, unix.EINVAL},
		{cm.JoinAttr{Mask: both, Flags: 1}, unix.EINVAL}, {cm.JoinAttr{Mask: both, Flags: 1, Address: netip.IPv4Unspecified()}, unix.EINVAL},
	} {
		refused(t, id.JoinMulticastEx(row.attr, nil), row.want)
	}
	refused(t, id.LeaveMulticast(groupV4), unix.EADDRNOTAVAIL)
	check(t, id.DestroyQP())
	check(t, id.Close())
}

// idJoinedTwice: two memberships, of which the last is left first; the queue pair stays attached while
// there is one.
func idJoinedTwice(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	id, qp := b.memberID(w.b.end.IPv4)
	sender, from := a.memberID(w.a.end.IPv4)
	for n := range 2 {
		check(t, id.JoinMulticast(groupV4, n))
		if event := b.event(id, cm.EventMulticastJoin); event.Context != n {
			t.Errorf("join %d: %+v", n, event)
		}
	}
	check(t, sender.JoinMulticast(groupV4, nil))
	event := a.event(sender, cm.EventMulticastJoin)
	check(t, id.LeaveMulticast(groupV4))
	b.receiveOn(qp, 0)
	a.toGroupOf(from, event, 1)
	checkGroup(t, w.b, w.b.expect(ok(0))[0], groupV4, from)
	check(t, id.LeaveMulticast(groupV4))
	refused(t, id.LeaveMulticast(groupV4), unix.EADDRNOTAVAIL)
	refused(t, qp.DetachMcast(gid(groupV4), 0), unix.EINVAL) // it was detached
	check(t, id.DestroyQP())
	check(t, id.Close())
	check(t, sender.DestroyQP()) // while it is attached
	check(t, sender.Close())
}

// idLeftEarly: a join that is left before the program has got its event has none, and attaches nothing.
func idLeftEarly(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	id, qp := e.memberID(w.a.end.IPv4)
	for range 20 {
		check(t, id.JoinMulticast(groupV4, "left"))
		check(t, id.LeaveMulticast(groupV4))
	}
	check(t, id.JoinMulticast(groupV4, "joined"))
	if event := e.event(id, cm.EventMulticastJoin); event.Context != "joined" {
		t.Errorf("%+v", event)
	}
	check(t, id.LeaveMulticast(groupV4))
	refused(t, qp.DetachMcast(gid(groupV4), 0), unix.EINVAL)
	check(t, id.JoinMulticast(groupV4, "never got"))
	check(t, id.DestroyQP())
	check(t, id.Close())
}

// idSendOnly: what is sent reaches members; the sender's own queue pair is not attached.
func idSendOnly(t *testing.T, w *world) {
	a, b := newIDEnd(w.a), newIDEnd(w.b)
	sender, from := a.memberID(w.a.end.IPv4)
	receiver, to := b.memberID(w.b.end.IPv4)
	check(t, receiver.JoinMulticast(groupV4, nil))
	b.event(receiver, cm.EventMulticastJoin)
	check(t, sender.JoinMulticastEx(cm.JoinAttr{Mask: cm.JoinAttrAddress | cm.JoinAttrFlags, Flags: cm.JoinSendOnlyFullMember, Address: groupV4}, nil))
	event := a.event(sender, cm.EventMulticastJoin)
	refused(t, from.DetachMcast(gid(groupV4), 0), unix.EINVAL)
	b.receiveOn(to, 0)
	a.receiveOn(from, 5)
	a.toGroupOf(from, event, 1)
	w.b.expect(ok(0))
	w.settle()
	same(t, completions(t, w.a.cq))
	check(t, sender.LeaveMulticast(groupV4))
}

// idMany: nothing is left of ids that were created, joined and closed.
func idMany(t *testing.T, w *world) {
	e := newIDEnd(w.a)
	for range 100 {
		id := e.id(cm.PortSpaceUDP)
		check(t, id.Bind(port(w.a.end.IPv4, 0)))
		check(t, id.JoinMulticast(groupV4, nil))
		check(t, id.Close())
	}
	check(t, e.channel.Close())
}
