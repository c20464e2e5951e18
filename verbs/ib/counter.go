package ib

// Counter is one number of a card's statistics.
type Counter struct {
	Place string // where the packets were counted: XDP, socket, routers, engine or CM
	Name  string
	Value uint64 // packets, unless the name says bytes
	Lost  bool   // dropped packets that were to or from this card; each is in exactly one such counter
}

// MaxCounters is the number of counters of an object; their indices are below it.
const MaxCounters = 16

// CounterDescription is what is counted of a queue pair or a CQ (ibv_counter_description).
type CounterDescription uint32

// The first two are libibverbs'.
const (
	CounterPackets     CounterDescription = 0 // delivered to the queue pair
	CounterBytes       CounterDescription = 1 // their payload
	CounterSentPackets CounterDescription = 2 // that it has sent, acknowledgements and what was sent again among them
	CounterSentBytes   CounterDescription = 3 // their payload
	CounterCompletions CounterDescription = 4 // that a CQ has been given, of requests that were carried out
	CounterErrors      CounterDescription = 5 // of others
)
