// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var joinTests = []rig.Test{
	{Name: "join refused", Run: joinRefused},
	{Name: "groups that no link carries", Run: groupsThatNoLinkCarries},
	{Name: "joined twice", Run: joinedTwice},
}

func joinRefused(t *testing.T, w *rig.World) {
	s := w.A
	for _, flags := range []verbs.JoinFlags{2, 3, 4} {
		_, err := s.Ctx.JoinMulticast(rig.GroupV4, flags)
		rig.Refused(t, err, unix.EINVAL, "join flags")
	}
	_, err := s.Ctx.JoinMulticast(w.B.End.IPv4, verbs.JoinFullMember)
	rig.Refused(t, err, unix.EINVAL, "not a multicast address")
	m := s.Join(rig.GroupV4)
	rig.Check(t, m.Close())
	rig.Refused(t, m.Close(), unix.EINVAL, "membership")
	sender, err := s.Ctx.JoinMulticast(rig.GroupV6, verbs.JoinSendOnlyFullMember)
	rig.Check(t, err)
	attr, err := sender.AHAttr()
	rig.Check(t, err)
	if source, err := s.Ctx.QueryGID(1, attr.GRH.SGIDIndex); attr.GRH.DGID != rig.GID(rig.GroupV6) || attr.GRH.HopLimit != 64 || err != nil || source.GID != rig.GID(s.End.IPv6) {
		t.Errorf("%+v from %v, %v", attr, source, err)
	}
}

// groupsThatNoLinkCarries checks that groups whose scope excludes links, and groups of other interfaces, are refused.
func groupsThatNoLinkCarries(t *testing.T, w *rig.World) {
	for _, row := range []struct{ group, says string }{
		{"ff01::1", "interface-local"}, {"ff00::1", "reserved"}, {"ff31::1", "inside a host"}, {"ff02::1%other7", "other7"},
	} {
		group := netip.MustParseAddr(row.group)
		_, err := w.A.Ctx.JoinMulticast(group, verbs.JoinFullMember)
		rig.Refused(t, err, unix.EINVAL, row.says)
		if group.Zone() != "" {
			continue
		}
		route := w.A.Route(w.B.End.IPv6)
		route.GRH.DGID = rig.GID(group)
		_, err = w.A.PD.CreateAH(rig.Guard(t), route)
		rig.Refused(t, err, unix.EINVAL, row.says)
	}
}

// joinedTwice checks that closing one of two memberships of a group keeps the other.
func joinedTwice(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	first, second := b.Join(rig.GroupV4), b.Join(rig.GroupV4)
	rig.Check(t, b.QP.AttachMcast(second.MGID(), second.MLID()))
	rig.Check(t, first.Close())
	b.Receive(0)
	copy(a.Slot(9), "to the group")
	a.Post(a.ToGroup(rig.GroupV4, 9, 12))
	rig.CheckGroup(t, b, b.Expect(rig.OK(0))[0], rig.GroupV4, a.QP)
	rig.Check(t, second.Close())
	rig.Refused(t, first.Close(), verbs.ErrObjectClosed)
}
