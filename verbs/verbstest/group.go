// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var groupTests = []rig.Test{
	{Name: "group", Run: group},
	{Name: "block loopback", Run: blockLoopback},
	{Name: "attach refused", Run: attachRefused},
	{Name: "detach", Run: detach},
	{Name: "fan-out", Run: fanOut},
}

// Every member receives a copy, even on the sender's own card. A queue pair that is attached to another group receives
// nothing.
func group(t *testing.T, w *rig.World) {
	for _, group := range rig.Groups {
		t.Run(group.String(), func(t *testing.T) { oneGroup(t, w, group) })
	}
	w.NothingElse()
}

func oneGroup(t *testing.T, w *rig.World, group netip.Addr) {
	a, b := w.A, w.B
	m := b.Join(group)
	if m.MGID() != rig.GID(group) {
		t.Errorf("MGID %v", m.MGID())
	}
	rig.Check(t, a.QP.AttachMcast(m.MGID(), m.MLID()))
	first, second, other := b.Member(group), b.Member(group), b.Member(rig.OtherGroup)
	a.Receive(0)
	for i, qp := range []*verbs.QP{first, second, other} {
		b.ReceiveOn(qp, i)
	}
	copy(a.Slot(9), "to the group")
	a.Post(a.ToGroup(group, 9, 12))
	for _, wc := range a.Wait(2) {
		rig.Check(t, wc.Err())
		if wc.Opcode == verbs.WCRecv {
			rig.CheckGroup(t, a, wc, group, a.QP)
		}
	}
	got := map[verbs.QPN]bool{}
	for _, wc := range b.Wait(2) {
		rig.Check(t, wc.Err())
		got[wc.QPN] = true
		rig.CheckGroup(t, b, wc, group, a.QP)
	}
	if !got[first.Number()] || !got[second.Number()] {
		t.Errorf("received by %v", got)
	}
	for _, qp := range []*verbs.QP{a.QP, first, second} {
		rig.Check(t, qp.DetachMcast(rig.GID(group), 0))
	}
}

func blockLoopback(t *testing.T, w *rig.World) {
	a := w.A
	qp := a.NewQPWith(verbs.QPInitAttr{SendCQ: a.CQ, RecvCQ: a.CQ, Cap: rig.DefaultCap(), BlockSelfMcastLB: true})
	rig.Check(t, qp.Activate(rig.TestQKey))
	rig.Check(t, qp.AttachMcast(rig.GID(rig.GroupV4), 0))
	a.ReceiveOn(qp, 0)
	rig.Check(t, qp.PostSend([]verbs.SendWR{a.ToGroup(rig.GroupV4, 9, 1)}))
	a.Expect(rig.OK(99))
	w.NothingElse()
	a.ExpectDrops(map[string]uint64{"self_loopback": 1})
}

// Attachments that rdmavt rejects are rejected with its errno, and have no effect.
func attachRefused(t *testing.T, w *rig.World) {
	qp, mgid := w.A.QP, rig.GID(rig.GroupV4)
	fresh := w.A.NewQP(rig.DefaultCap())
	rig.Refused(t, fresh.AttachMcast(mgid, 0), unix.EINVAL, "RESET")
	rig.Refused(t, fresh.DetachMcast(mgid, 0), unix.EINVAL)
	rig.Refused(t, qp.AttachMcast(rig.GID(w.B.End.IPv4), 0), unix.EINVAL, "not a multicast GID")
	rig.Refused(t, qp.DetachMcast(mgid, 0), unix.EINVAL, "not attached")
	rig.Check(t, qp.AttachMcast(mgid, 5))
	rig.Refused(t, qp.AttachMcast(mgid, 6), unix.EINVAL, "MLID")
	rig.Refused(t, qp.DetachMcast(mgid, 6), unix.EINVAL)
	rig.Check(t, qp.AttachMcast(mgid, 5)) // attaching again is not an error
	rig.Check(t, qp.DetachMcast(mgid, 5)) // one detach undoes both
	rig.Refused(t, qp.DetachMcast(mgid, 5), unix.EINVAL)
	for _, kind := range rig.ConnectedTypes {
		rig.Refused(t, w.A.NewConnected(kind).AttachMcast(mgid, 0), unix.EINVAL, "cannot be attached to groups")
	}
	rig.Check(t, fresh.Close())
	rig.Check(t, qp.Close()) // no attachment is left
}

// An attached queue pair cannot be destroyed. It receives nothing after it was detached.
func detach(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	b.Join(rig.GroupV4)
	rig.Check(t, b.QP.AttachMcast(rig.GID(rig.GroupV4), 0))
	rig.Refused(t, b.QP.Close(), unix.EBUSY, "detach")
	b.Receive(0)
	rig.Check(t, b.QP.DetachMcast(rig.GID(rig.GroupV4), 0))
	a.Post(a.ToGroup(rig.GroupV4, 9, 1))
	a.Wait(1)
	w.NothingElse()
	rig.Check(t, b.QP.Close())
}

// If a queue pair in a group has another Q_Key, or no receives posted, the other queue pairs receive all messages.
func fanOut(t *testing.T, w *rig.World) {
	for _, group := range rig.Groups {
		t.Run(group.String(), func(t *testing.T) { fanOutTo(t, w, group) })
	}
	w.NothingElse()
	w.B.ExpectDrops(map[string]uint64{"qkey": 2 * rig.Depth, "no_receive": 2 * rig.Depth})
}

func fanOutTo(t *testing.T, w *rig.World, group netip.Addr) {
	a, b := w.A, w.B
	b.Join(group)
	members := []*verbs.QP{b.Member(group), b.Member(group), b.Member(group), b.Member(group)}
	first, second, keyless := members[0], members[1], members[2]
	rig.Check(t, keyless.Modify(&verbs.QPAttr{QKey: rig.TestQKey + 1}, verbs.QPAttrQKey))
	for i := range rig.Depth {
		for _, qp := range []*verbs.QP{first, second, keyless} {
			b.ReceiveOn(qp, i)
		}
		a.Post(a.ToGroup(group, 9, 12))
		a.Wait(1)
	}
	got := map[verbs.QPN]int{}
	for _, wc := range b.Wait(2 * rig.Depth) {
		rig.Check(t, wc.Err())
		got[wc.QPN]++
	}
	if got[first.Number()] != rig.Depth || got[second.Number()] != rig.Depth {
		t.Errorf("received by %v", got)
	}
	w.Settle()
	for _, qp := range members {
		rig.Check(t, qp.DetachMcast(rig.GID(group), 0))
	}
}
