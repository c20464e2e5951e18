package hca

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// pathUsers is how many use the path to an address.
func (s *station) pathUsers(to string) (users int) {
	s.device.asking.Lock()
	defer s.device.asking.Unlock()
	for ends, p := range s.device.paths {
		if ends.dest == gid(to) {
			users += p.users
		}
	}
	return users
}

// A connected queue pair uses its peer's path from RTR on, and leaves it however that ends.
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
	check(t, one.Modify(&verbs.QPAttr{State: verbs.QPStateReset}, verbs.QPAttrState))
	users("one in RESET", 1, 0)
	bad := attr
	bad.PathMTU = 9
	if one.Connect(&bad) == nil {
		t.Error("a path MTU of 9 is taken")
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
