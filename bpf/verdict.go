package bpf

import "fmt"

// Verdict is what became of a packet in the steering program, and why. Each packet
// ends in exactly one.
type Verdict uint32

// The verdicts. What passes goes on to the network stack as if the program were
// not there.
const (
	// Redirected: handed to the AF_XDP socket of its queue.
	Redirected = Verdict(steerVerdictREDIRECTED)

	// PassNotRoCE: not IP, not UDP, not port 4791, or too short to tell.
	PassNotRoCE = Verdict(steerVerdictPASS_NOT_ROCE)
	// PassVLAN: not in the device's VLAN, or with more than one tag.
	PassVLAN = Verdict(steerVerdictPASS_VLAN)
	// PassFragment: a fragment of an IP packet.
	PassFragment = Verdict(steerVerdictPASS_FRAGMENT)
	// PassNotOwn: to a unicast address that is not the device's.
	PassNotOwn = Verdict(steerVerdictPASS_NOT_OWN)
	// PassGroup: to a group to which no queue pair here is attached.
	PassGroup = Verdict(steerVerdictPASS_GROUP)

	// DropOptions: the IPv4 header has options, which RoCEv2 does not use.
	DropOptions = Verdict(steerVerdictDROP_OPTIONS)
	// DropTruncated: the frame ends before the packet, or its linear part before
	// the transport headers.
	DropTruncated = Verdict(steerVerdictDROP_TRUNCATED)
	// DropLength: the lengths of IP and UDP disagree, or leave no room for BTH,
	// DETH and ICRC.
	DropLength = Verdict(steerVerdictDROP_LENGTH)
	// DropMulticastSource: the source is a group.
	DropMulticastSource = Verdict(steerVerdictDROP_MULTICAST_SOURCE)
	// DropOwnSource: the source is this device: a switch or bridge reflected it.
	DropOwnSource = Verdict(steerVerdictDROP_OWN_SOURCE)
	// DropGroupQPN: to a group, but not to queue pair 0xFFFFFF.
	DropGroupQPN = Verdict(steerVerdictDROP_GROUP_QPN)
	// DropUnknownQP: to a queue pair that does not exist.
	DropUnknownQP = Verdict(steerVerdictDROP_UNKNOWN_QP)
	// DropNoRing: no AF_XDP socket is set for the receiving queue.
	DropNoRing = Verdict(steerVerdictDROP_NO_RING)

	// NumVerdicts is how many there are.
	NumVerdicts = int(steerVerdictVERDICTS)
)

var verdictNames = [NumVerdicts]string{
	Redirected:          "redirected",
	PassNotRoCE:         "pass_not_roce",
	PassVLAN:            "pass_vlan",
	PassFragment:        "pass_fragment",
	PassNotOwn:          "pass_not_own",
	PassGroup:           "pass_group",
	DropOptions:         "drop_options",
	DropTruncated:       "drop_truncated",
	DropLength:          "drop_length",
	DropMulticastSource: "drop_multicast_source",
	DropOwnSource:       "drop_own_source",
	DropGroupQPN:        "drop_group_qpn",
	DropUnknownQP:       "drop_unknown_qp",
	DropNoRing:          "drop_no_ring",
}

// String is the name of the verdict's counter.
func (v Verdict) String() string {
	if int(v) < NumVerdicts {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict(%d)", uint32(v))
}

// Counters counts packets by Verdict, since Load, over all CPUs.
type Counters [NumVerdicts]uint64

// Counters reads the counters one after the other, while packets come in.
func (s *Steering) Counters() (Counters, error) {
	var counters Counters
	for v := range counters {
		var perCPU []uint64
		if err := s.objs.Counters.Lookup(uint32(v), &perCPU); err != nil {
			return Counters{}, fmt.Errorf("read the counter %s: %w", Verdict(v), err)
		}
		for _, packets := range perCPU {
			counters[v] += packets
		}
	}
	return counters, nil
}
