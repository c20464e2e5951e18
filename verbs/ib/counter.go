// SPDX-License-Identifier: Apache-2.0

package ib

// Counter is one counter of a card.
type Counter struct {
	Place string // place of counting: XDP, socket, routers, engine or CM
	Name  string
	Value uint64 // packets, unless the name contains bytes
	Lost  bool   // dropped packets to or from this card; each is in exactly one such counter
}

// MaxCounters is the number of counters of an object; their indices are below it.
const MaxCounters = 16

// CounterDescription selects the quantity that a counter counts (ibv_counter_description).
type CounterDescription uint32

// The first two are those of libibverbs.
const (
	CounterPackets     CounterDescription = 0 // packets delivered to the queue pair
	CounterBytes       CounterDescription = 1 // payload bytes delivered to the queue pair
	CounterSentPackets CounterDescription = 2 // packets sent by the queue pair, including acknowledgements and retransmissions
	CounterSentBytes   CounterDescription = 3 // payload bytes sent by the queue pair, including retransmissions
	CounterCompletions CounterDescription = 4 // successful completions added to the CQ
	CounterErrors      CounterDescription = 5 // failed completions added to the CQ
)
