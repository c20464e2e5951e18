// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"golang.org/x/sys/unix"
)

// arrivalTimes acts as a card that receives messages at fixed times after the start, in order.
type arrivalTimes struct {
	start         time.Time
	times         []time.Duration
	taken         uint64
	spins, sleeps time.Duration // total time waited each way
}

func (c *arrivalTimes) take(ctx context.Context, sleep bool) error {
	from := time.Now()
	defer func() {
		if sleep {
			c.sleeps += time.Since(from)
		} else {
			c.spins += time.Since(from)
		}
	}()
	if len(c.times) == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(c.times[0] - time.Since(c.start)):
		c.times = c.times[1:]
		c.taken++
		return nil
	}
}

func (c *arrivalTimes) watch(ctx context.Context, sleep bool) error {
	c.start = time.Now()
	w := Watch{Take: c.take, Taken: &c.taken, Limit: QuietLimit}
	return w.Until(ctx, sleep)
}

// TestWatchTimesOut: the limit applies from the last message on.
func TestWatchTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &arrivalTimes{times: []time.Duration{time.Second, 30 * time.Second, 59 * time.Second}}
		err := c.watch(t.Context(), false)
		if took := time.Since(c.start); !errors.Is(err, unix.ETIMEDOUT) || c.taken != 3 || took < 89*time.Second || took > 90*time.Second {
			t.Errorf("%d messages, %v, %v", c.taken, took, err)
		}
		if spun := 4*spinLimit + 8*checkInterval; c.spins > spun || c.sleeps < 80*time.Second {
			t.Errorf("spun for %v, slept for %v", c.spins, c.sleeps)
		}
	})
}

// TestWatchEnds: the end of the context is not an error.
func TestWatchEnds(t *testing.T) {
	gone := errors.New("gone")
	for _, cause := range []error{nil, gone} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancelCause(t.Context())
			time.AfterFunc(29*time.Second, func() { stop(cause) })
			c := &arrivalTimes{}
			if err := c.watch(ctx, true); err != nil || c.spins != 0 || time.Since(c.start) != 29*time.Second {
				t.Errorf("%v after %v, spun for %v", err, time.Since(c.start), c.spins)
			}
		})
	}
}

// TestWatchFails: an error of the card at the end of a checkInterval is returned.
func TestWatchFails(t *testing.T) {
	take := func(ctx context.Context, _ bool) error { <-ctx.Done(); return unix.EMSGSIZE }
	synctest.Test(t, func(t *testing.T) {
		w := Watch{Take: take, Taken: new(uint64), Limit: QuietLimit}
		if err := w.Until(t.Context(), true); !errors.Is(err, unix.EMSGSIZE) {
			t.Error(err)
		}
		if err := Drain(t.Context(), take, w.Taken, 1, QuietLimit); !errors.Is(err, unix.EMSGSIZE) {
			t.Error("drained:", err)
		}
	})
}

// TestTakenIsShown: the progress line shows the count of messages.
func TestTakenIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shown strings.Builder
		line := cli.StartProgress(&shown, "bandwidth")
		c := &arrivalTimes{start: time.Now(), times: []time.Duration{time.Second, 2 * time.Second, 12 * time.Second}}
		w := Watch{Take: Take(c.take).Shown(&c.taken, line), Taken: &c.taken, Limit: 10 * time.Second}
		if err := w.Until(t.Context(), true); !errors.Is(err, unix.ETIMEDOUT) {
			t.Error(err)
		}
		if line.End(); shown.String() != "bandwidth: 10s, 2 messages, 0/s\nbandwidth: 20s, 3 messages, 0/s\n" {
			t.Errorf("%q", shown.String())
		}
	})
}

// TestDrain: a drain ends with silence, with the last message, or at its limit.
func TestDrain(t *testing.T) {
	for name, row := range map[string]struct {
		every time.Duration
		count int
		taken uint64
	}{
		"none":      {0, 0, 0},
		"a few":     {70 * time.Millisecond, 10, 10},
		"too late":  {150 * time.Millisecond, 10, 0},
		"no end":    {50 * time.Millisecond, 2000, 600},
		"all there": {0, 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &arrivalTimes{start: time.Now()}
				for i := range row.count {
					c.times = append(c.times, time.Duration(i+1)*row.every)
				}
				if err := Drain(t.Context(), c.take, &c.taken, math.MaxUint64, QuietLimit); err != nil || c.taken != row.taken {
					t.Errorf("got %d messages, want %d, %v", c.taken, row.taken, err)
				}
			})
		})
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	c := &arrivalTimes{start: time.Now(), times: []time.Duration{time.Hour}}
	if err := Drain(stopped, c.take, &c.taken, math.MaxUint64, QuietLimit); !errors.Is(err, context.Canceled) {
		t.Error("stopped:", err)
	}
}
