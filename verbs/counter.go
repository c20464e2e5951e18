package verbs

import "fmt"

// Counter is one number of a card's statistics.
type Counter struct {
	Place string // where the packets ended: XDP, socket, routers or engine
	Name  string
	Value uint64 // packets, but where the name says bytes
	Lost  bool   // packets that were for us, or from us, and were dropped; each is in one such counter
}

// CounterReader is implemented by a Provider that counts what becomes of packets.
type CounterReader interface {
	// Counters gives all counters, always in the same order, of the whole card: whatever
	// program's packets they were.
	Counters() ([]Counter, error)
}

// Counters gives all counters of the card (what the kernel calls hw_counters),
// always in the same order; ErrUnsupported where it has none. They are not read at one instant.
func (c *Context) Counters() ([]Counter, error) {
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
