package verbs

import "fmt"

// Counter is one number of a card's statistics.
type Counter struct {
	Place string // where the packets were counted: XDP, socket, routers, engine or CM
	Name  string
	Value uint64 // packets, unless the name says bytes
	Lost  bool   // dropped packets that were to or from this card; each is in exactly one such counter
}

// CounterReader is implemented by a Provider that counts packets.
type CounterReader interface {
	// Counters gives all counters, always in the same order. They count the packets of all
	// programs on the card.
	Counters() ([]Counter, error)
}

// Counters gives all counters of the card (hw_counters in the kernel), always in the same order;
// ErrUnsupported if it has none. They are not all read at the same instant.
func (c *Context) Counters() ([]Counter, error) {
	if c == nil {
		return nil, fmt.Errorf("read counters: %w", errNil)
	}
	reader, ok := c.provider.(CounterReader)
	if !ok {
		return nil, fmt.Errorf("read counters: %w: the card has none", ErrUnsupported)
	}
	all, err := reader.Counters()
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	return all, nil
}
