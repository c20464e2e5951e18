// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Counter is one counter of a card.
//
// See [ib.Counter] for its fields.
type Counter = ib.Counter

// Counters returns all counters of the card (hw_counters in the kernel), always in the same order; ErrUnsupported if it
// has none. The values are not a consistent snapshot.
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
