// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var hwStatsTests = []rig.Test{
	{Name: "hardware statistics", Run: hwStats},
	{Name: "hardware statistics refuse", Run: hwStatsRefuse},
}

// hwStats checks that the statistics are the card's counters, with unique names, and that they include new packets
// after the lifespan of the cached values.
func hwStats(t *testing.T, w *rig.World) {
	s := w.A
	if !s.HasCounters() {
		return
	}
	short, err := kernel.AllocHWStats(s.Ctx, nil, time.Nanosecond)
	rig.Check(t, err)
	names := short.Names()
	sent := slices.Index(names, "engine_sent")
	slices.Sort(names)
	if len(slices.Compact(names)) != len(short.Names()) || sent < 0 {
		t.Fatalf("names %q", short.Names())
	}
	long, err := kernel.AllocHWStats(s.Ctx, []string{"engine_sent"}, time.Hour)
	rig.Check(t, err)
	before, at, err := long.Get()
	rig.Check(t, err)
	s.Post(s.Send(1, s.AH(w.B.End.IPv4), w.B.QP))
	s.Expect(rig.OK(1))
	rig.Eventually(t, "the packet to be counted", func() bool {
		now, _, err := short.Get()
		rig.Check(t, err)
		return now[sent] > before[0]
	})
	if after, same, err := long.Get(); after[0] != before[0] || !same.Equal(at) || err != nil {
		t.Errorf("within its lifespan %d became %d, %v became %v (%v)", before[0], after[0], at, same, err)
	}
}

func hwStatsRefuse(t *testing.T, w *rig.World) {
	s := w.A
	if !s.HasCounters() {
		return
	}
	_, err := kernel.AllocHWStats(s.Ctx, []string{"engine_sent", "no_such"}, 0)
	rig.Refused(t, err, unix.EINVAL, "no_such", "Counters")
	_, err = kernel.AllocHWStats(s.Ctx, nil, -time.Second)
	rig.Refused(t, err, unix.EINVAL, "-1s")
}
