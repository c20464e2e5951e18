package verbstest

import (
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var hwStatsTests = []test{
	{name: "hardware statistics", run: hwStats},
	{name: "hardware statistics refuse", run: hwStatsRefuse},
}

// hasCounters says whether a station's card counts.
func (s *station) hasCounters() bool {
	s.Helper()
	_, err := s.ctx.AllocHWStats(nil, 0)
	if verbs.KindOf(err) == verbs.ErrUnsupported {
		return false
	}
	check(s, err)
	return true
}

// The statistics are the card's counters, each name once. What is sent shows when the values that were
// read before have ended.
func hwStats(t *testing.T, w *world) {
	s := w.a
	if !s.hasCounters() {
		return
	}
	short, err := s.ctx.AllocHWStats(nil, time.Nanosecond)
	check(t, err)
	names := short.Names()
	sent := slices.Index(names, "engine_sent")
	slices.Sort(names)
	if len(slices.Compact(names)) != len(short.Names()) || sent < 0 {
		t.Fatalf("names %q", short.Names())
	}
	long, err := s.ctx.AllocHWStats([]string{"engine_sent"}, time.Hour)
	check(t, err)
	before, at, err := long.Get()
	check(t, err)
	s.post(s.send(1, s.ah(w.b.end.IPv4), w.b.qp))
	s.expect(ok(1))
	eventually(t, "the packet to be counted", func() bool {
		now, _, err := short.Get()
		check(t, err)
		return now[sent] > before[0]
	})
	if after, same, err := long.Get(); after[0] != before[0] || !same.Equal(at) || err != nil {
		t.Errorf("within its lifespan %d became %d, %v became %v (%v)", before[0], after[0], at, same, err)
	}
}

func hwStatsRefuse(t *testing.T, w *world) {
	s := w.a
	if !s.hasCounters() {
		return
	}
	_, err := s.ctx.AllocHWStats([]string{"engine_sent", "no_such"}, 0)
	refused(t, err, unix.EINVAL, "no_such", "Counters")
	_, err = s.ctx.AllocHWStats(nil, -time.Second)
	refused(t, err, unix.EINVAL, "-1s")
}
