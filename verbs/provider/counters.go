package provider

import "github.com/roced/roced/verbs/ib"

// MaxCounterAttaches is the number of attachments that an object of counters has at most.
const MaxCounterAttaches = 64

type (
	// CreateCountersGrant is an object of counters, which are 0.
	CreateCountersGrant struct{ Counters Handle }
	// AttachCountersRequest has a counter count something of a queue pair, or of a CQ, from now on.
	AttachCountersRequest struct {
		Counters Handle
		Of       Handle // the CQ of CounterCompletions and CounterErrors, else the queue pair
		What     ib.CounterDescription
		Index    uint32
	}
	// ReadCountersRequest reads an object's counters.
	ReadCountersRequest struct{ Counters Handle }
	// ReadCountersGrant has them by their indices. Those that nothing is attached to are 0.
	ReadCountersGrant struct{ Values [ib.MaxCounters]uint64 }
	// DestroyCountersRequest ends the counting.
	DestroyCountersRequest struct{ Counters Handle }
)
