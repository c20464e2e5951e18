// SPDX-License-Identifier: Apache-2.0

package netdev

import "sync/atomic"

// drop is the reason why a packet was not carried.
type drop uint8

const (
	dropNone drop = iota

	// Received packets.
	dropShort          // shorter than a header and a byte
	dropProtocol       // neither IP nor ARP
	dropNotIP          // another IP version than the header states
	dropLength         // another length than its IP header states
	dropSource         // source address that no neighbour can have
	dropDestination    // destination address that cannot be on a link
	dropUnicastInGroup // a unicast packet in the group
	dropPiece          // a piece without the previous ones
	dropTooLong        // more pieces or bytes than permitted
	dropResolution     // an invalid query or reply
	dropClaim          // a query or reply with an address of this host
	dropInterface      // refused by the interface

	// Packets to send.
	dropNoAddress   // the interface has no source address for the query
	dropNoNeighbour // no neighbour responds for the address
	dropNoHop       // the host has no route to it
	dropWaiting     // too many packets wait for the neighbour, or the neighbour was evicted
	dropSend        // refused by the card

	drops
)

var dropNames = [drops]string{
	dropShort: "short", dropProtocol: "protocol", dropNotIP: "not_ip", dropLength: "length", dropSource: "source",
	dropDestination: "destination", dropUnicastInGroup: "unicast_in_group", dropPiece: "piece",
	dropTooLong: "too_long", dropResolution: "resolution", dropClaim: "claim", dropInterface: "interface",
	dropNoAddress: "no_address", dropNoNeighbour: "no_neighbour", dropNoHop: "no_hop", dropWaiting: "waiting",
	dropSend: "send",
}

// counters are the counters of a device.
type counters struct {
	received, receivedBytes, sent, sentBytes atomic.Uint64
	dropped                                  [drops]atomic.Uint64
}

func (c *counters) drop(d drop, n int) { c.dropped[d].Add(uint64(n)) }

// Stats are the counters of a device since Init.
type Stats struct {
	Received, ReceivedBytes uint64 // packets written to the interface
	Sent, SentBytes         uint64 // packets passed to the card
	Neighbours              int    // peers that are known, or queried, now
	// Drops is the number of packets that were not carried, by reason; the card's own drops are not included.
	Drops map[string]uint64
}

// Stats returns the device's counters.
func (d *Device) Stats() Stats {
	c := &d.counters
	s := Stats{
		Received: c.received.Load(), ReceivedBytes: c.receivedBytes.Load(),
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(), Drops: map[string]uint64{},
	}
	for i := dropNone + 1; i < drops; i++ {
		if n := c.dropped[i].Load(); n > 0 {
			s.Drops[dropNames[i]] = n
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s.Neighbours = len(d.neighbours.all)
	return s
}
