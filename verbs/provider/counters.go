package provider

// The counters of an object have indices below MaxCounters, and so many attachments has it at most.
const (
	MaxCounters        = 16
	MaxCounterAttaches = 64
)

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

type (
	// CreateCountersGrant is an object of counters, which are 0.
	CreateCountersGrant struct{ Counters Handle }
	// AttachCountersRequest has a counter count something of a queue pair, or of a CQ, from now on.
	AttachCountersRequest struct {
		Counters Handle
		Of       Handle // the CQ of CounterCompletions and CounterErrors, else the queue pair
		What     CounterDescription
		Index    uint32
	}
	// ReadCountersRequest reads an object's counters.
	ReadCountersRequest struct{ Counters Handle }
	// ReadCountersGrant has them by their indices. Those that nothing is attached to are 0.
	ReadCountersGrant struct{ Values [MaxCounters]uint64 }
	// DestroyCountersRequest ends the counting.
	DestroyCountersRequest struct{ Counters Handle }
)
