// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"

	"github.com/roced/roced/datapath/conn"
)

// Drop is the reason why a packet was not delivered or not sent. DropNone means that it was delivered or sent.
type Drop uint8

// The reasons. First those of malformed packets, in the order of wire.Fault; then those of addresses, queue pairs and
// services; last those of packets to send.
const (
	DropNone           Drop = iota
	DropNotRoCE             // not IP, not UDP, or another port
	DropOptions             // IPv4 options
	DropFragment            // IP fragment
	DropTruncated           // the frame ends before the packet does
	DropLength              // lengths disagree
	DropIPChecksum          // IPv4 header checksum wrong
	DropVersion             // transport header version other than 0
	DropOpcode              // undefined opcode
	DropPad                 // pad count and length disagree
	DropICRC                // invariant CRC wrong
	DropNotOwn              // flooded: the destination is not an address of this card
	DropOtherHost           // flooded: the destination is another host's MAC
	DropMartianSource       // a source address that no host can have, such as a broadcast address
	DropOwnSource           // reflected: the source is an address of this card
	DropGroupSource         // the source is a multicast address
	DropVLAN                // a VLAN tag that is not the card's
	DropUnknownQP           // no queue pair of that number
	DropNoGroup             // no queue pair is attached to the group
	DropGroupQPN            // to a group but not to QP 0xFFFFFF, or the reverse
	DropQPState             // the queue pair is not ready to receive
	DropCongestion          // ignored CNP: congestion control is off, or the queue pair is UD
	DropUnsupported         // a transport service that is not implemented
	DropPKey                // partition key mismatch
	DropNotPeer             // from an address, or a queue pair of this card, that is not the connection's peer's
	DropDuplicate           // a duplicate: acknowledged again, not executed again
	DropOutOfSequence       // packets before it are missing, and it was not kept
	DropStrayAnswer         // an unexpected response
	DropInvalidRequest      // a request that the connection's peer is not permitted to make, or that is out of order
	DropRemoteAccess        // memory that a connection's peer may not access in this way
	DropXRCDomain           // an XRC request whose SRQ is not in the XRC domain of the queue pair
	DropQKey                // Q_Key mismatch
	DropTooLong             // payload longer than the active MTU
	DropNoReceive           // no receive request posted
	DropNoRoom              // receive request shorter than the message (UD: GRH and payload)
	DropProtection          // receive request with memory that the queue pair cannot write to
	DropCQFull              // the completion queue was overrun
	DropSelfLoopback        // a queue pair's own message to a group, with NoSelfLoopback set
	DropFault               // a panic ended the round that processed the packet; see Fault
	DropUnreachable         // not sent: no route, or the neighbour is unreachable
	DropUnresolved          // not sent: too many packets wait for the neighbour's address
	DropPathMTU             // not sent: exceeds the MTU of its route
	DropLinkDown            // not sent: the link does not accept frames
	DropInterface           // not sent: dropped by the interface (no carrier, or its queue is full)

	dropCount int = iota
)

var dropNames = [dropCount]string{
	"none", "not_roce", "ip_options", "fragment", "truncated", "length", "ip_checksum", "transport_version",
	"unknown_opcode", "pad", "icrc", "not_own", "other_host", "martian_source", "own_source", "group_source", "vlan", "unknown_qp", "no_group", "group_qpn",
	"qp_state", "congestion_notification", "unsupported", "pkey",
	"not_peer", "duplicate", "out_of_sequence", "stray_answer", "invalid_request", "remote_access", "xrc_domain", "qkey", "too_long", "no_receive", "no_room",
	"protection", "cq_full", "self_loopback", "fault", "unreachable", "unresolved",
	"path_mtu", "link_down", "interface",
}

// String returns the name of the reason's counter.
func (d Drop) String() string {
	if int(d) < dropCount {
		return dropNames[d]
	}
	return fmt.Sprintf("drop(%d)", uint8(d))
}

// Unsent reports whether the reason is one of packets to send. All others are of received packets.
func (d Drop) Unsent() bool { return d >= DropUnreachable }

// Counters counts packets, and bytes of payload, since the card was opened.
//
// Every received packet, and every further copy of one to a group member, is counted once, in Delivered or under one
// drop reason: Received + Copies = Delivered + the drops that are not Unsent. Sent includes the Unsent drops: Sent
// minus these is the number of packets passed to the interface or to this card's own queue pairs.
type Counters struct {
	Sent, SentBytes           uint64 // packets to send, including responses, retransmissions and dropped packets
	Received, ReceivedBytes   uint64 // packets from the link or looped back, including dropped packets
	Copies                    uint64 // copies of packets to groups, beyond the first of each
	Delivered, DeliveredBytes uint64
	Loopback                  uint64 // packets that this card sent to itself
	conn.Counters                    // of connections
	ECNMarked                 uint64 // received packets with an ECN congestion mark
	CNPSent, CNPHandled       uint64 // congestion notification packets: sent to peers; received and applied
	Faults                    uint64 // rounds that a bug in roced has ended; see Fault
	Drops                     [dropCount]uint64
}

// Reasons returns all drop reasons. Each has a counter.
func Reasons() (all []Drop) {
	for reason := DropNotRoCE; int(reason) < dropCount; reason++ {
		all = append(all, reason)
	}
	return all
}

// dropped returns the sum over the reasons that are not Unsent.
func (c *Counters) dropped() (sum uint64) {
	for _, n := range c.Drops[:DropUnreachable] {
		sum += n
	}
	return sum
}

// Dropped returns the sum over all reasons.
func (c *Counters) Dropped() (sum uint64) {
	for _, n := range c.Drops {
		sum += n
	}
	return sum
}

// add adds another engine's counters.
func (c *Counters) add(o *Counters) {
	for _, sum := range []struct {
		to *uint64
		n  uint64
	}{
		{&c.Sent, o.Sent}, {&c.SentBytes, o.SentBytes}, {&c.Received, o.Received}, {&c.ReceivedBytes, o.ReceivedBytes}, {&c.Copies, o.Copies},
		{&c.Delivered, o.Delivered}, {&c.DeliveredBytes, o.DeliveredBytes}, {&c.Loopback, o.Loopback}, {&c.Retransmits, o.Retransmits},
		{&c.Timeouts, o.Timeouts}, {&c.Probes, o.Probes}, {&c.SequenceNAKs, o.SequenceNAKs}, {&c.RNRNAKs, o.RNRNAKs},
		{&c.ECNMarked, o.ECNMarked}, {&c.CNPSent, o.CNPSent}, {&c.CNPHandled, o.CNPHandled}, {&c.Faults, o.Faults},
	} {
		*sum.to += sum.n
	}
	for i := range c.Drops {
		c.Drops[i] += o.Drops[i]
	}
}
