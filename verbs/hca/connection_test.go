// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/verbs"
	"github.com/vishvananda/netlink"
)

// connected creates a queue pair that is connected to an address, where no peer needs to exist.
func (s *station) connected(kind verbs.QPType, to string) *verbs.QP {
	s.Helper()
	qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: kind, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap()})
	check(s, err)
	check(s, qp.Connect(&verbs.QPAttr{AHAttr: *s.route(to), DestQPN: 5, PathMTU: wire.MTU256}))
	return qp
}

// A connection's packets follow the neighbour's address, like those of address handles.
func TestConnectionsFollowNeighbours(t *testing.T) {
	t.Parallel()
	hosts := labtest.Pair(t)
	a := newStation(t, open(t, hosts.A))
	s := newSniffer(t, hosts.B)
	for _, ip := range []string{"10.77.0.2", "fd77::2"} {
		qp := a.connected(verbs.QPTypeUC, ip)
		for i, state := range []int{netlink.NUD_REACHABLE, netlink.NUD_PERMANENT} {
			mac := wire.MAC{2, 0, 0, 0, 2, byte(i)}
			setEntry(t, hosts.A, ip, mac[:], state)
			eventually(t, "packets to the new address", func() bool {
				check(t, qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled}}))
				a.wait(1)
				return s.destMAC() == mac
			})
		}
	}
}

// pathUsers returns the number of users of the path to an address.
func (s *station) pathUsers(to string) (users int) {
	for _, p := range s.device.paths.List() {
		if p.Ends.Dest == gid(to) {
			users += p.Users
		}
	}
	return users
}

// A connected queue pair uses its peer's path from RTR on, and releases it however the connection ends.
func TestPathsOfConnections(t *testing.T) {
	w := newStillPair(t)
	session, err := w.a.device.NewSession(SessionConfig{})
	check(t, err)
	s := newStationIn(t, w.a.device, session)
	users := func(when string, ipv4, ipv6 int) {
		t.Helper()
		if a, b := s.pathUsers("10.0.0.2"), s.pathUsers("fd00::2"); a != ipv4 || b != ipv6 {
			t.Errorf("%s: %d and %d users of the paths, want %d and %d", when, a, b, ipv4, ipv6)
		}
	}
	newQP := func() *verbs.QP {
		t.Helper()
		qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap()})
		check(t, err)
		return qp
	}
	attr := verbs.QPAttr{AHAttr: *s.route("10.0.0.2"), DestQPN: 5, PathMTU: wire.MTU256}
	one, other := newQP(), newQP()
	users("new", 0, 0)
	check(t, one.Connect(&attr))
	check(t, other.Connect(&attr))
	users("connected", 2, 0)
	list, _, _, err := session.Objects(ObjectQP, Cursor{}, 10)
	check(t, err)
	if last := list[len(list)-1]; last.PeerQPN != 5 || last.Dest != gid("10.0.0.2") || last.Source != gid("10.0.0.1") {
		t.Errorf("listed as %+v", last)
	}
	check(t, one.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState))
	users("one in RESET", 1, 0)
	bad := attr
	bad.PathMTU = 9
	if one.Connect(&bad) == nil {
		t.Error("path MTU 9 was accepted")
	}
	users("a change that was refused", 1, 0)
	check(t, other.Modify(&verbs.QPAttr{State: verbs.QPStateSQD}, verbs.QPAttrState))
	check(t, other.Modify(&verbs.QPAttr{AHAttr: *s.route("fd00::2")}, verbs.QPAttrAV))
	users("another address", 0, 1)
	check(t, other.Close())
	users("closed", 0, 0)
	check(t, newQP().Connect(&attr))
	users("a new one", 1, 0)
	check(t, session.Close())
	users("the session closed", 0, 0)
}
