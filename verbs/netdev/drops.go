package netdev

import "sync/atomic"

// drop is why a packet was not carried.
type drop uint8

const (
	dropNone drop = iota

	// Packets that came.
	dropShort          // no room for a header and a byte
	dropProtocol       // neither IP nor ARP
	dropNotIP          // not of the IP version that the header says
	dropLength         // not as long as its IP header says
	dropSource         // claims an address that no neighbour can have
	dropDestination    // for an address that is on no wire
	dropUnicastInGroup // for one host, but sent to all
	dropPiece          // a piece without those before it
	dropTooLong        // more pieces, or bytes, than a packet may have
	dropResolution     // a question or an answer that makes no sense
	dropClaim          // a question or an answer in the name of this host
	dropInterface      // refused by the interface

	// Packets to be sent.
	dropNoAddress   // the interface has no address to ask from
	dropNoNeighbour // nobody answers for the address
	dropNoHop       // the host has no route to it
	dropWaiting     // too many wait for the same neighbour, or the neighbour was forgotten for another
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

// counters are a device's numbers.
type counters struct {
	received, receivedBytes, sent, sentBytes atomic.Uint64
	dropped                                  [drops]atomic.Uint64
}

func (c *counters) drop(d drop, n int) { c.dropped[d].Add(uint64(n)) }

// Stats are a device's numbers since Init.
type Stats struct {
	Received, ReceivedBytes uint64 // packets that the interface was given
	Sent, SentBytes         uint64 // packets that the card was given
	Neighbours              int    // peers that are known, or asked for, now
	// Drops is how many packets were not carried, by reason; the card's own drops are not in it.
	Drops map[string]uint64
}

// Stats reads the device's numbers.
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
