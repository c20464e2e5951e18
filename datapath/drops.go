package datapath

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
)

// Drop is the reason why a packet was not delivered, or not sent; DropNone that it was.
type Drop uint8

// The reasons. Those that name a malformed packet come first, in the order of
// wire.Fault, then the others in the order of the ladder of checks.
const (
	DropNone          Drop = iota
	DropNotRoCE            // not IP, not UDP, or another port
	DropOptions            // IPv4 options
	DropFragment           // part of a datagram
	DropTruncated          // the frame ends before the packet does
	DropLength             // lengths disagree
	DropIPChecksum         // IPv4 header checksum wrong
	DropVersion            // transport header version other than 0
	DropOpcode             // no such opcode
	DropPad                // pad count does not fit the length
	DropICRC               // invariant CRC wrong
	DropNotOwn             // flooded: the destination is not an address of this device
	DropOtherHost          // flooded: the destination is another host's MAC
	DropMartianSource      // a source that can be nobody's address
	DropOwnSource          // reflected: our own address as source
	DropGroupSource        // a group's address as source
	DropVLAN               // a VLAN tag that is not the device's
	DropUnknownQP          // no queue pair of that number
	DropNoGroup            // no queue pair is attached to the group
	DropGroupQPN           // to a group but not to QP 0xFFFFFF, or the reverse
	DropQPState            // the queue pair is not ready to receive
	DropCongestion         // congestion notification: counted, not acted on
	DropUnsupported        // a transport service that is not built
	DropPKey               // partition key mismatch
	DropQKey               // Q_Key mismatch
	DropTooLong            // payload longer than the active MTU
	DropNoReceive          // no receive request posted
	DropNoRoom             // receive request shorter than packet and GRH
	DropProtection         // receive request names memory that it may not write
	DropCQFull             // the completion queue was overrun
	DropSelfLoopback       // a queue pair's own message to a group, which it does not want back
	DropUnreachable        // not sent: no route, or the neighbour does not answer
	DropUnresolved         // not sent: too many packets wait for the neighbour's answer
	DropPathMTU            // not sent: longer than the MTU of its route allows
	DropLinkDown           // not sent: the link does not take frames
	DropInterface          // not sent: the interface dropped it, for want of a carrier or of room

	dropCount int = iota
)

var dropNames = [dropCount]string{
	"none", "not_roce", "ip_options", "fragment", "truncated", "length", "ip_checksum", "transport_version",
	"unknown_opcode", "pad", "icrc", "not_own", "other_host", "martian_source", "own_source", "group_source", "vlan", "unknown_qp", "no_group", "group_qpn",
	"qp_state", "congestion_notification", "unsupported", "pkey", "qkey", "too_long", "no_receive", "no_room",
	"protection", "cq_full", "self_loopback", "unreachable", "unresolved",
	"path_mtu", "link_down", "interface",
}

// String names the reason as its counter is named.
func (d Drop) String() string {
	if int(d) < dropCount {
		return dropNames[d]
	}
	return fmt.Sprintf("drop(%d)", uint8(d))
}

// Unsent says whether a packet that was dropped for this reason was one of ours, on its way out.
func (d Drop) Unsent() bool { return d >= DropUnreachable }

// faultDrop is the reason for a packet that Parse refused.
func faultDrop(f wire.Fault) Drop { return Drop(f-wire.FaultNotRoCE) + DropNotRoCE }

// Counters is what a device has done since it was opened, in packets and bytes
// of payload. Every packet received, and every further copy of one to a group, is
// in Delivered or in one drop reason: Received + Copies = Delivered + the drops that
// are not Unsent. Of the packets to be sent, those that are Unsent are in Sent too: what the
// interface and this device's own queue pairs were given is Sent less these.
type Counters struct {
	Sent, SentBytes           uint64 // carried out for programs, whatever became of them
	Received, ReceivedBytes   uint64 // taken from the link or looped back, whatever became of them
	Copies                    uint64 // of packets to groups, beyond the first of each
	Delivered, DeliveredBytes uint64
	Loopback                  uint64 // packets delivered to this device itself
	Drops                     [dropCount]uint64
}

// Reasons gives the drop reasons that a counter exists for.
func Reasons() (all []Drop) {
	for reason := DropNotRoCE; int(reason) < dropCount; reason++ {
		all = append(all, reason)
	}
	return all
}

// Dropped is the sum over all reasons.
func (c *Counters) Dropped() (sum uint64) {
	for _, n := range c.Drops {
		sum += n
	}
	return sum
}
