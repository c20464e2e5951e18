package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var joinTests = []test{
	{name: "join refused", run: joinRefused},
	{name: "groups that no link carries", run: groupsThatNoLinkCarries},
	{name: "joined twice", run: joinedTwice},
}

func joinRefused(t *testing.T, w *world) {
	s := w.a
	for _, flags := range []verbs.JoinFlags{0, 3, 4} {
		_, err := s.ctx.JoinMulticast(groupV4, flags)
		refused(t, err, unix.EINVAL, "join flags")
	}
	_, err := s.ctx.JoinMulticast(w.b.end.IPv4, verbs.JoinFullMember)
	refused(t, err, unix.EINVAL, "not a multicast address")
	m := s.join(groupV4)
	check(t, m.Close())
	refused(t, m.Close(), unix.EINVAL, "membership")
	sender, err := s.ctx.JoinMulticast(groupV6, verbs.JoinSendOnlyFullMember)
	check(t, err)
	attr, err := sender.AHAttr()
	check(t, err)
	if source, err := s.ctx.QueryGIDEx(1, attr.GRH.SGIDIndex); attr.GRH.DGID != gid(groupV6) || err != nil || source.GID != gid(s.end.IPv6) {
		t.Errorf("%+v from %v, %v", attr, source, err)
	}
}

// Groups that no link carries, and those of other interfaces, are refused.
func groupsThatNoLinkCarries(t *testing.T, w *world) {
	for _, row := range []struct{ group, says string }{
		{"ff01::1", "interface-local"}, {"ff00::1", "reserved"}, {"ff31::1", "inside a host"}, {"ff02::1%other7", "other7"},
	} {
		group := netip.MustParseAddr(row.group)
		_, err := w.a.ctx.JoinMulticast(group, verbs.JoinFullMember)
		refused(t, err, unix.EINVAL, row.says)
		if group.Zone() != "" {
			continue
		}
		route := w.a.route(w.b.end.IPv6)
		route.GRH.DGID = gid(group)
		_, err = w.a.pd.CreateAH(guard(t), route)
		refused(t, err, unix.EINVAL, row.says)
	}
}

// Two memberships of a group are two: the end of one leaves the other.
func joinedTwice(t *testing.T, w *world) {
	a, b := w.a, w.b
	first, second := b.join(groupV4), b.join(groupV4)
	check(t, b.qp.AttachMcast(second.MGID(), second.MLID()))
	check(t, first.Close())
	b.receive(0)
	copy(a.slot(9), "to the group")
	a.post(a.toGroup(groupV4, 9, 12))
	checkGroup(t, b, b.expect(ok(0))[0], groupV4, a.qp)
	check(t, second.Close())
	refused(t, first.Close(), verbs.ErrObjectClosed)
}
