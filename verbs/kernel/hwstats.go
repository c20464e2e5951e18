// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
)

// defaultLifespan is the default lifespan of HWStats' values.
const defaultLifespan = 10 * time.Millisecond

// HWStats are selected counters of the card (rdma_hw_stats). Values are cached, so that frequent queries cost the card
// little. It is safe for concurrent use.
type HWStats struct {
	read     func() ([]verbs.Counter, error)
	now      func() time.Time
	lifespan time.Duration
	names    []string
	places   []int // indices of the names in the result of read

	mu        sync.Mutex
	values    []uint64
	timestamp time.Time // beginning of the last update; zero before the first one
}

// AllocHWStats selects counters by their names, in the order of the names; nil selects all counters of the card
// (rdma_alloc_hw_stats_struct). A name is a Counter's place and name, in lower case: engine_sent. Values are cached for
// lifespan; 0 means 10 ms, as in the kernel. ErrInvalid for a name that the card does not have, ErrUnsupported if it
// has no counters.
func AllocHWStats(c *verbs.Context, names []string, lifespan time.Duration) (*HWStats, error) {
	if c == nil {
		return nil, fmt.Errorf("allocate hardware statistics: %w", errNil)
	}
	h, err := newHWStats(c.Counters, time.Now, names, lifespan)
	if err != nil {
		return nil, fmt.Errorf("allocate hardware statistics: %w", err)
	}
	return h, nil
}

func newHWStats(read func() ([]verbs.Counter, error), now func() time.Time, names []string, lifespan time.Duration) (*HWStats, error) {
	if lifespan < 0 {
		return nil, fmt.Errorf("%w: the lifespan %v is negative; 0 means %v", verbs.ErrInvalid, lifespan, defaultLifespan)
	}
	if lifespan == 0 {
		lifespan = defaultLifespan
	}
	counters, err := read()
	if err != nil {
		return nil, err
	}
	known := make([]string, len(counters))
	for i := range counters {
		known[i] = hwStatsName(&counters[i])
	}
	if names == nil {
		names = known
	}
	h := &HWStats{read: read, now: now, lifespan: lifespan, names: slices.Clone(names), places: make([]int, len(names)), values: make([]uint64, len(names))}
	for i, name := range names {
		if h.places[i] = slices.Index(known, name); h.places[i] < 0 {
			return nil, fmt.Errorf("%w: the card has no counter %q; Context.Counters lists its counters", verbs.ErrInvalid, name)
		}
	}
	return h, nil
}

func hwStatsName(c *verbs.Counter) string { return strings.ToLower(c.Place + "_" + c.Name) }

// Names returns the counters' names.
func (h *HWStats) Names() []string {
	if h == nil {
		return nil
	}
	return slices.Clone(h.names)
}

// Lifespan returns the maximum age of values.
func (h *HWStats) Lifespan() time.Duration {
	if h == nil {
		return 0
	}
	return h.lifespan
}

// Get returns the counters' values, in the order of Names, and the time when the card was read: now, or less than the
// lifespan ago. The error is that of Context.Counters.
func (h *HWStats) Get() (values []uint64, timestamp time.Time, err error) {
	if h == nil {
		return nil, time.Time{}, fmt.Errorf("read hardware statistics: %w", errNil)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	if h.timestamp.IsZero() || now.Sub(h.timestamp) >= h.lifespan {
		if err := h.update(now); err != nil {
			return nil, time.Time{}, err
		}
	}
	return slices.Clone(h.values), h.timestamp, nil
}

// Modify enables or disables a counter, by its index in Names (modify_hw_stat). All are always enabled. ErrUnsupported
// for disabling, ErrInvalid for an index beyond Names.
func (h *HWStats) Modify(index int, on bool) error {
	switch {
	case h == nil:
		return fmt.Errorf("modify hardware statistics: %w", errNil)
	case index < 0 || index >= len(h.names):
		return fmt.Errorf("modify hardware statistics: %w: counter %d of %d", verbs.ErrInvalid, index, len(h.names))
	case !on:
		return fmt.Errorf("modify hardware statistics: %w: %s is always counted", verbs.ErrUnsupported, h.names[index])
	}
	return nil
}

// update reads the counters, which come in the same order each time. The caller holds mu.
func (h *HWStats) update(now time.Time) error {
	counters, err := h.read()
	if err != nil {
		return err
	}
	for i, place := range h.places {
		h.values[i] = counters[place].Value
	}
	h.timestamp = now
	return nil
}
