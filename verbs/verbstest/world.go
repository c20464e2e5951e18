package verbstest

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/roced/roced/verbs"
)

// world is what a test has: a station at each end.
type world struct {
	pair Pair
	a, b *station
}

func newWorld(t testing.TB, pair Pair) *world {
	t.Helper()
	w := &world{pair: pair, a: newStation(t, pair.A), b: newStation(t, pair.B)}
	w.settle() // nothing of what was before comes later
	for _, s := range []*station{w.a, w.b} {
		s.dropped = s.counters()
	}
	return w
}

// settle waits until what was sent before has arrived: a message each way comes after it.
func (w *world) settle() {
	w.a.Helper()
	w.a.mark(w.b)
	w.b.mark(w.a)
}

// mark sends a message that is no test's, from a queue pair of its own to another.
func (s *station) mark(peer *station) {
	s.Helper()
	from, to := newMarker(s), newMarker(peer)
	ah := s.ah(peer.end.IPv4)
	check(s, to.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{to.mr.SGE(0, 40)}}}))
	check(s, from.qp.PostSend([]verbs.SendWR{s.send(0, ah, to.qp)}))
	same(s, s.waitOn(from.cq, 1), ok(0))
	same(s, peer.waitOn(to.cq, 1), ok(0))
	check(s, ah.Close())
	from.close()
	to.close()
}

type marker struct {
	*station
	mr *verbs.MR
	cq *verbs.CQ
	qp *verbs.QP
}

func newMarker(s *station) *marker {
	s.Helper()
	m := &marker{station: s, cq: s.newCQ(1)}
	var err error
	m.mr, err = s.pd.AllocMR(40, verbs.AccessLocalWrite)
	check(s, err)
	m.qp = s.newQPWith(verbs.QPInitAttr{SendCQ: m.cq, RecvCQ: m.cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1}})
	check(s, m.qp.Activate(testQKey))
	return m
}

func (m *marker) close() {
	m.Helper()
	for _, object := range []closer{m.qp, m.cq, m.mr} {
		check(m, object.Close())
	}
}

// nothingElse checks that no completion comes any more.
func (w *world) nothingElse() {
	w.a.Helper()
	w.settle()
	for _, s := range []*station{w.a, w.b} {
		same(s, completions(s, s.cq))
	}
}

// counters are the packets that the card's engine has dropped, by reason; nil if it does not
// count them.
func (s *station) counters() map[string]uint64 {
	s.Helper()
	all, err := s.ctx.Counters()
	if errors.Is(err, verbs.ErrUnsupported) {
		return nil
	}
	check(s, err)
	dropped := map[string]uint64{}
	for _, c := range all {
		if c.Lost && c.Place == "engine" && c.Value != 0 {
			dropped[strings.TrimPrefix(c.Name, "drop_")] = c.Value
		}
	}
	return dropped
}

// drops are how many packets the card has dropped since the test began, by reason.
func (s *station) drops() map[string]uint64 {
	now := s.counters()
	for name, n := range s.dropped {
		if now[name] -= n; now[name] == 0 {
			delete(now, name)
		}
	}
	return now
}

// expectDrops checks which packets the card has dropped, where it counts; settle comes before.
func (s *station) expectDrops(want map[string]uint64) {
	s.Helper()
	if got := s.drops(); got != nil && !maps.Equal(got, want) {
		s.Errorf("drops %v, want %v", got, want)
	}
}
