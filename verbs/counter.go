package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Counter is one number of a card's statistics.
//
// Its fields: [ib.Counter].
type Counter = ib.Counter

// Counters gives all counters of the card (hw_counters in the kernel), always in the same order;
// ErrUnsupported if it has none. They are not all read at the same instant.
func (c *Context) Counters() ([]Counter, error) {
	if c == nil {
		return nil, fmt.Errorf("read counters: %w", errNil)
	}
	reader, ok := c.provider.(provider.CounterReader)
	if !ok {
		return nil, fmt.Errorf("read counters: %w: the card has none", ErrUnsupported)
	}
	all, err := reader.Counters()
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	return all, nil
}
