// SPDX-License-Identifier: Apache-2.0

package bpf

import "fmt"

// Verdict is the outcome of a packet in the steering program, with the reason. Each packet has exactly one.
type Verdict uint32

// The verdicts. Packets that pass continue to the network stack as without the program.
const (
	// Redirected: delivered to the AF_XDP socket of its queue.
	Redirected = Verdict(steerVerdictREDIRECTED)

	// PassNotRoCE: not IP, not UDP, not port 4791, or too short for these headers.
	PassNotRoCE = Verdict(steerVerdictPASS_NOT_ROCE)
	// PassVLAN: not in the card's VLAN, or with more than one tag.
	PassVLAN = Verdict(steerVerdictPASS_VLAN)
	// PassFragment: a fragment of an IP packet.
	PassFragment = Verdict(steerVerdictPASS_FRAGMENT)
	// PassNotOwn: to a unicast address that is not one of the card's.
	PassNotOwn = Verdict(steerVerdictPASS_NOT_OWN)
	// PassGroup: to a group to which no queue pair of this card is attached.
	PassGroup = Verdict(steerVerdictPASS_GROUP)
	// PassOtherHost: to an address of the card, or to a group, but to the MAC of another host.
	PassOtherHost = Verdict(steerVerdictPASS_OTHER_HOST)

	// DropOptions: the IPv4 header has options, which RoCEv2 does not use.
	DropOptions = Verdict(steerVerdictDROP_OPTIONS)
	// DropTruncated: the frame is shorter than the packet, or its linear part does not contain the transport headers.
	DropTruncated = Verdict(steerVerdictDROP_TRUNCATED)
	// DropLength: the lengths of IP and UDP differ, or are too short for BTH, DETH and ICRC.
	DropLength = Verdict(steerVerdictDROP_LENGTH)
	// DropMulticastSource: the source is a group.
	DropMulticastSource = Verdict(steerVerdictDROP_MULTICAST_SOURCE)
	// DropMartianSource: the source address is invalid: 0.0.0.0, 127.0.0.0/8, 255.255.255.255, a broadcast address of
	// the card's subnets, ::, ::1, ::ffff:a.b.c.d in IPv6.
	DropMartianSource = Verdict(steerVerdictDROP_MARTIAN_SOURCE)
	// DropOwnSource: the source is this card, so a switch or bridge has reflected the packet.
	DropOwnSource = Verdict(steerVerdictDROP_OWN_SOURCE)
	// DropGroupQPN: to a group, but not to queue pair 0xFFFFFF.
	DropGroupQPN = Verdict(steerVerdictDROP_GROUP_QPN)
	// DropUnknownQP: to a queue pair that does not exist.
	DropUnknownQP = Verdict(steerVerdictDROP_UNKNOWN_QP)
	// DropNoRing: no AF_XDP socket is set for the receiving queue.
	DropNoRing = Verdict(steerVerdictDROP_NO_RING)
	// DropRedirect: the kernel could not redirect the packet, for example because its socket is bound to another
	// interface or queue. (Packets to a full socket have another counter.) Counted only if Uncounted returns nil.
	DropRedirect = Verdict(steerVerdictDROP_REDIRECT)

	// NumVerdicts is the number of verdicts.
	NumVerdicts = int(steerVerdictVERDICTS)
)

var verdictNames = [NumVerdicts]string{
	Redirected:          "redirected",
	PassNotRoCE:         "pass_not_roce",
	PassVLAN:            "pass_vlan",
	PassFragment:        "pass_fragment",
	PassNotOwn:          "pass_not_own",
	PassGroup:           "pass_group",
	PassOtherHost:       "pass_other_host",
	DropOptions:         "drop_options",
	DropTruncated:       "drop_truncated",
	DropLength:          "drop_length",
	DropMulticastSource: "drop_multicast_source",
	DropMartianSource:   "drop_martian_source",
	DropOwnSource:       "drop_own_source",
	DropGroupQPN:        "drop_group_qpn",
	DropUnknownQP:       "drop_unknown_qp",
	DropNoRing:          "drop_no_ring",
	DropRedirect:        "drop_redirect",
}

// String returns the name of the verdict's counter.
func (v Verdict) String() string {
	if int(v) < NumVerdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint32(v))
}

// Counters contains the numbers of packets by Verdict since Load, summed over all CPUs.
type Counters [NumVerdicts]uint64

// Counters reads the counters. It reads them one after the other, so their sum may be off by packets that arrive
// meanwhile.
func (s *Steering) Counters() (Counters, error) {
	var counters Counters
	for v := NumVerdicts - 1; v >= 0; v-- { // Redirected last, since it includes DropRedirect
		var perCPU []uint64
		if err := s.objs.Counters.Lookup(uint32(v), &perCPU); err != nil {
			return Counters{}, fmt.Errorf("read the counter %s: %w", Verdict(v), err)
		}
		for _, packets := range perCPU {
			counters[v] += packets
		}
	}
	// The program counted these packets as Redirected before the kernel refused them.
	counters[Redirected] -= min(counters[DropRedirect], counters[Redirected])
	return counters, nil
}
