package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var groupTests = []test{
	{name: "group", run: group},
	{name: "block loopback", run: blockLoopback},
	{name: "attach refused", run: attachRefused},
	{name: "detach", run: detach},
	{name: "fan-out", run: fanOut},
}

var (
	groupV4    = netip.MustParseAddr("239.1.2.3")
	otherGroup = netip.MustParseAddr("239.129.2.3") // of the same Ethernet address
	groupV6    = netip.MustParseAddr("ff0e::1:2:3")
	groups     = []netip.Addr{groupV4, groupV6}
)

// toGroup is a request to send to a group what lies in a slot.
func (s *station) toGroup(group netip.Addr, slot, length int) verbs.SendWR {
	s.Helper()
	wr := s.send(99, s.ah(group), s.qp, s.piece(slot, length))
	wr.RemoteQPN = verbs.MulticastQPN
	return wr
}

// join makes the station a full member, without which nothing may reach it.
func (s *station) join(group netip.Addr) *verbs.Membership {
	s.Helper()
	m, err := s.ctx.JoinMulticast(group, verbs.JoinFullMember)
	check(s, err)
	return m
}

// member is another queue pair of a station, attached to a group.
func (s *station) member(group netip.Addr) *verbs.QP {
	s.Helper()
	qp := s.active(defaultCap())
	check(s, qp.AttachMcast(gid(group), 0))
	return qp
}

// Every member gets its copy, on the sender's own card too; who is attached
// to another group gets nothing.
func group(t *testing.T, w *world) {
	for _, group := range groups {
		t.Run(group.String(), func(t *testing.T) { oneGroup(t, w, group) })
	}
	w.nothingElse()
}

func oneGroup(t *testing.T, w *world, group netip.Addr) {
	a, b := w.a, w.b
	m := b.join(group)
	if m.MGID() != gid(group) {
		t.Errorf("MGID %v", m.MGID())
	}
	check(t, a.qp.AttachMcast(m.MGID(), m.MLID()))
	first, second, other := b.member(group), b.member(group), b.member(otherGroup)
	a.receive(0)
	for i, qp := range []*verbs.QP{first, second, other} {
		b.receiveOn(qp, i)
	}
	copy(a.slot(9), "to the group")
	a.post(a.toGroup(group, 9, 12))
	for _, wc := range a.wait(2) {
		check(t, wc.Err())
		if wc.Opcode == verbs.WCRecv {
			checkGroup(t, a, wc, group, a.qp)
		}
	}
	got := map[verbs.QPN]bool{}
	for _, wc := range b.wait(2) {
		check(t, wc.Err())
		got[wc.QPN] = true
		checkGroup(t, b, wc, group, a.qp)
	}
	if !got[first.Number()] || !got[second.Number()] {
		t.Errorf("got by %v", got)
	}
	for _, qp := range []*verbs.QP{a.qp, first, second} {
		check(t, qp.DetachMcast(gid(group), 0))
	}
}

// checkGroup checks a message that came to a group.
func checkGroup(t *testing.T, s *station, wc verbs.WC, group netip.Addr, from *verbs.QP) {
	t.Helper()
	grh, payload := s.received(wc)
	if payload != "to the group" || grh.DGID() != gid(group) || wc.SrcQP != from.Number() {
		t.Errorf("%q to %v from %v", payload, grh.DGID(), wc.SrcQP)
	}
}

func blockLoopback(t *testing.T, w *world) {
	a := w.a
	qp := a.newQPWith(verbs.QPInitAttr{SendCQ: a.cq, RecvCQ: a.cq, Cap: defaultCap(), BlockSelfMcastLB: true})
	check(t, qp.Activate(testQKey))
	check(t, qp.AttachMcast(gid(groupV4), 0))
	a.receiveOn(qp, 0)
	check(t, qp.PostSend([]verbs.SendWR{a.toGroup(groupV4, 9, 1)}))
	a.expect(ok(99))
	w.nothingElse()
	a.expectDrops(map[string]uint64{"self_loopback": 1})
}

// What rdmavt refuses, with its errno, and nothing attached when refused.
func attachRefused(t *testing.T, w *world) {
	qp, mgid := w.a.qp, gid(groupV4)
	fresh := w.a.newQP(defaultCap())
	refused(t, fresh.AttachMcast(mgid, 0), unix.EINVAL, "RESET")
	refused(t, fresh.DetachMcast(mgid, 0), unix.EINVAL)
	refused(t, qp.AttachMcast(gid(w.b.end.IPv4), 0), unix.EINVAL, "not a multicast GID")
	refused(t, qp.DetachMcast(mgid, 0), unix.EINVAL, "not attached")
	check(t, qp.AttachMcast(mgid, 5))
	refused(t, qp.AttachMcast(mgid, 6), unix.EINVAL, "MLID")
	refused(t, qp.DetachMcast(mgid, 6), unix.EINVAL)
	check(t, qp.AttachMcast(mgid, 5)) // twice is no error
	check(t, qp.DetachMcast(mgid, 5)) // and needs one detach
	refused(t, qp.DetachMcast(mgid, 5), unix.EINVAL)
	for _, kind := range connectedTypes {
		refused(t, w.a.newConnected(kind).AttachMcast(mgid, 0), unix.EINVAL, "cannot be attached to groups")
	}
	check(t, fresh.Close())
	check(t, qp.Close()) // nothing is attached
}

// An attached queue pair is not destroyed, and gets nothing after it was detached.
func detach(t *testing.T, w *world) {
	a, b := w.a, w.b
	b.join(groupV4)
	check(t, b.qp.AttachMcast(gid(groupV4), 0))
	refused(t, b.qp.Close(), unix.EBUSY, "detach")
	b.receive(0)
	check(t, b.qp.DetachMcast(gid(groupV4), 0))
	a.post(a.toGroup(groupV4, 9, 1))
	a.wait(1)
	w.nothingElse()
	check(t, b.qp.Close())
}

// Of several queue pairs in a group one has another Q_Key, and one has no receives posted; the
// others get everything.
func fanOut(t *testing.T, w *world) {
	for _, group := range groups {
		t.Run(group.String(), func(t *testing.T) { fanOutTo(t, w, group) })
	}
	w.nothingElse()
	w.b.expectDrops(map[string]uint64{"qkey": 2 * depth, "no_receive": 2 * depth})
}

func fanOutTo(t *testing.T, w *world, group netip.Addr) {
	a, b := w.a, w.b
	b.join(group)
	members := []*verbs.QP{b.member(group), b.member(group), b.member(group), b.member(group)}
	first, second, keyless := members[0], members[1], members[2]
	check(t, keyless.Modify(&verbs.QPAttr{QKey: testQKey + 1}, verbs.QPAttrQKey))
	for i := range depth {
		for _, qp := range []*verbs.QP{first, second, keyless} {
			b.receiveOn(qp, i)
		}
		a.post(a.toGroup(group, 9, 12))
		a.wait(1)
	}
	got := map[verbs.QPN]int{}
	for _, wc := range b.wait(2 * depth) {
		check(t, wc.Err())
		got[wc.QPN]++
	}
	if got[first.Number()] != depth || got[second.Number()] != depth {
		t.Errorf("got by %v", got)
	}
	w.settle()
	for _, qp := range members {
		check(t, qp.DetachMcast(gid(group), 0))
	}
}
