// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/datapath/xsk"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/nic"
)

// Statistics has a card's counters. Each received packet is counted once: in Steering unless it was redirected, else in
// Socket if the socket dropped it, else in Engine. Each packet to send is counted as sent or under the reason of its
// drop. The reasons are documented at datapath.Drop and bpf.Verdict, the connection manager's counters at cm.Counter.
type Statistics struct {
	Engine   datapath.Counters
	Steering []Counter
	Socket   xsk.Statistics
	// Sent counts packets by how they were passed to the kernel, see SendMode. Packets that the kernel returned unsent
	// are also in the engine's drops.
	Sent link.Sent
	// UDP counts unusable packets from UDP sockets.
	UDP network.UDPCounters
	// CM counts the messages that the connection manager received and sent on QP 1. The engine has also counted these
	// packets, as delivered and sent.
	CM cm.Counters
	// TooBig counts packets that routers reported as too big for a link on the path (ICMP).
	TooBig uint64
	// Faults counts bugs of roced that were contained: in rounds of the engine, in commands, in the
	// connection manager. Each has cost a session, or a packet.
	Faults uint64
}

// Counter is a named counter of a card's statistics.
type Counter = verbs.Counter

// AddCounters adds the values of a card's list to a sum of such lists; a nil sum is 0.
func AddCounters(sum, list []Counter) []Counter {
	if sum == nil {
		return slices.Clone(list)
	}
	for i := range list {
		sum[i].Value += list[i].Value
	}
	return sum
}

func newCounter(place, name string, value uint64, lost bool) Counter {
	return Counter{Place: place, Name: name, Value: value, Lost: lost}
}

// All returns all counters with their names, always in the same order.
func (s *Statistics) All() (all []Counter) {
	if all = slices.Clone(s.Steering); all == nil { // a network without steering
		all = nic.NoCounters()
	}
	all = append(all,
		newCounter("socket", "rx_dropped", s.Socket.RxDropped, true),
		newCounter("socket", "rx_ring_full", s.Socket.RxRingFull, true),
		newCounter("socket", "malformed", s.Socket.Malformed, true),
		newCounter("socket", "udp_truncated", s.UDP.Truncated, true),
		newCounter("socket", "udp_control", s.UDP.Control, true),
		newCounter("socket", "tx_frames", s.Sent.Frames, false),
		newCounter("socket", "tx_trains", s.Sent.Trains, false),
		newCounter("socket", "tx_in_trains", s.Sent.InTrains, false),
	)
	all = append(all, newCounter("routers", "too_big", s.TooBig, false), newCounter("roced", "faults", s.Faults, false))
	e := &s.Engine
	for _, c := range []struct {
		name  string
		value uint64
	}{
		{"sent", e.Sent}, {"sent_bytes", e.SentBytes}, {"received", e.Received}, {"received_bytes", e.ReceivedBytes},
		{"copies", e.Copies}, {"loopback", e.Loopback}, {"delivered", e.Delivered}, {"delivered_bytes", e.DeliveredBytes},
		{"retransmits", e.Retransmits}, {"timeouts", e.Timeouts}, {"probes", e.Probes}, {"sequence_naks", e.SequenceNAKs}, {"rnr_naks", e.RNRNAKs},
		{"np_ecn_marked_roce_packets", e.ECNMarked}, {"np_cnp_sent", e.CNPSent}, {"rp_cnp_handled", e.CNPHandled},
	} {
		all = append(all, newCounter("engine", c.name, c.value, false))
	}
	for _, reason := range datapath.Reasons() {
		all = append(all, newCounter("engine", "drop_"+reason.String(), e.Drops[reason], true))
	}
	for c, n := range s.CM {
		all = append(all, newCounter("CM", cm.Counter(c).String(), n, false))
	}
	return all
}

// String lists the counters that are not 0, as "engine sent 3, engine drop_qkey 1".
func (s Statistics) String() string {
	var parts []string
	for _, c := range s.All() {
		if c.Value != 0 {
			parts = append(parts, fmt.Sprintf("%s %s %d", c.Place, c.Name, c.Value))
		}
	}
	if len(parts) == 0 {
		return "all counters are 0"
	}
	return strings.Join(parts, ", ")
}
