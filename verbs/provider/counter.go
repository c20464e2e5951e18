package provider

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
