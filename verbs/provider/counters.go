// SPDX-License-Identifier: Apache-2.0

package provider

import "github.com/roced/roced/verbs/ib"

// MaxCounterAttaches is the maximum number of attachments of an object of counters.
const MaxCounterAttaches = 64

type (
	// CreateCountersGrant is an object of counters, which start at 0.
	CreateCountersGrant struct{ Counters Handle }
	// AttachCountersRequest adds a quantity of a queue pair, or of a CQ, to a counter from now on.
	AttachCountersRequest struct {
		Counters Handle
		Of       Handle // the CQ for CounterCompletions and CounterErrors, else the queue pair
		What     ib.CounterDescription
		Index    uint32
	}
	// ReadCountersRequest reads an object's counters.
	ReadCountersRequest struct{ Counters Handle }
	// ReadCountersGrant has the values by index. Counters without attachments are 0.
	ReadCountersGrant struct{ Values [ib.MaxCounters]uint64 }
	// DestroyCountersRequest ends the counting.
	DestroyCountersRequest struct{ Counters Handle }
)
