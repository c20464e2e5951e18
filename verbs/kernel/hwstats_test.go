// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

// clockwork is a card's counters and a clock, both moved by hand.
type clockwork struct {
	mu    sync.Mutex
	time  time.Time
	count uint64
	reads int
	err   error
}

func (c *clockwork) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *clockwork) read() ([]verbs.Counter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads++
	return []verbs.Counter{{Place: "XDP", Name: "redirected", Value: 7 * c.count}, {Place: "engine", Name: "sent", Value: c.count}}, c.err
}

func (c *clockwork) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
	c.count++
}

func newClockwork(t *testing.T, names []string, lifespan time.Duration) (*clockwork, *HWStats) {
	t.Helper()
	c := &clockwork{time: time.Unix(1000, 0), count: 1}
	h, err := newHWStats(c.read, c.now, names, lifespan)
	if err != nil {
		t.Fatal(err)
	}
	c.reads = 0
	return c, h
}

// Values are the same as long as they live, and read again when they are as old as their lifespan.
func TestHWStatsLifespan(t *testing.T) {
	for _, lifespan := range []time.Duration{0, time.Second} {
		c, h := newClockwork(t, nil, lifespan)
		lives := lifespan
		if lives == 0 {
			lives = 10 * time.Millisecond
		}
		if h.Lifespan() != lives || !slices.Equal(h.Names(), []string{"xdp_redirected", "engine_sent"}) {
			t.Errorf("%v, names %q", h.Lifespan(), h.Names())
		}
		for step, row := range []struct {
			pass  time.Duration
			sent  uint64
			reads int
		}{
			{0, 2, 1}, {0, 2, 1}, {lives - 1, 2, 1}, {1, 5, 2}, {lives / 2, 5, 2}, {100 * lives, 7, 3}, {0, 7, 3},
		} {
			c.pass(row.pass)
			values, timestamp, err := h.Get()
			if err != nil || !slices.Equal(values, []uint64{7 * row.sent, row.sent}) || c.reads != row.reads || c.now().Sub(timestamp) >= lives {
				t.Errorf("step %d: %d (%v) after %d reads, %v old; want %d after %d", step, values, err, c.reads, c.now().Sub(timestamp), row.sent, row.reads)
			}
		}
	}
}

// Selected counters are in the order of the names; a caller's changes of the slices affect only its own
// business.
func TestHWStatsNames(t *testing.T) {
	_, h := newClockwork(t, []string{"engine_sent", "xdp_redirected", "engine_sent"}, 0)
	for range 2 {
		values, _, err := h.Get()
		if err != nil || !slices.Equal(values, []uint64{1, 7, 1}) {
			t.Errorf("%d, %v", values, err)
		}
		clear(values)
		clear(h.Names())
	}
	if h.Names()[0] != "engine_sent" {
		t.Error("the names are the caller's to change")
	}
}

// Values that cannot be read are an error, not old values; later they can be read again.
func TestHWStatsError(t *testing.T) {
	c, h := newClockwork(t, nil, 0)
	c.err = verbs.ErrDeviceFatal
	if _, _, err := h.Get(); verbs.KindOf(err) != verbs.ErrDeviceFatal {
		t.Error(err)
	}
	c.err = nil
	if values, _, err := h.Get(); err != nil || values[1] != 1 {
		t.Errorf("%d, %v", values, err)
	}
	c.pass(time.Hour)
	c.err = verbs.ErrDeviceFatal
	if _, _, err := h.Get(); verbs.KindOf(err) != verbs.ErrDeviceFatal {
		t.Error(err)
	}
}

// Concurrent callers get consistent sets of values, with one read per lifespan.
func TestHWStatsAtOnce(t *testing.T) {
	c, h := newClockwork(t, nil, 0)
	const lives = 50
	for range lives {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if values, _, err := h.Get(); err != nil || values[0] != 7*values[1] {
					t.Errorf("%d, %v", values, err)
				}
			})
		}
		all.Wait()
		c.pass(h.Lifespan())
	}
	if c.reads != lives {
		t.Errorf("%d reads in %d lives", c.reads, lives)
	}
}
