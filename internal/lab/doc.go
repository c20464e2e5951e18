// SPDX-License-Identifier: Apache-2.0

// Package lab creates network namespaces and connects them by veth pairs, or by a bridge with IGMP and MLD
// snooping, for tests, the demo and benchmarks. It uses netlink and runs no other programs.
//
//	 /run/netns/PREFIX-PID-1            /run/netns/PREFIX-PID-2
//	┌────────────────────────┐         ┌────────────────────────┐
//	│ Namespace a            │  Veth   │            Namespace b │
//	│ lo     10.77.0.1/24  eth0 ─────── eth0  10.77.0.2/24   lo │
//	└────────────────────────┘         └────────────────────────┘
//	     ▲ Do: runs a function inside, then returns the thread
//
//	BadWire: joins two links of a namespace; loses, duplicates, corrupts and delays packets
//	Bridge: connects any number of hosts; IGMP and MLD snooping, a querier
//
// Namespaces are named as by ip-netns(8), so "ip netns exec NAME" works. Links are created inside their
// namespaces, never outside. IPv6 duplicate address detection is off, so addresses can be used immediately.
//
// The creator of a Namespace closes it; Close removes it with all its links. A killed process leaves its
// namespaces behind; Prune removes them at the next start. Methods may be called from several goroutines, but
// Close only after all other calls have returned.
//
// Out of scope: everything that is not needed to connect hosts. Subpackage labtest creates namespaces for the
// duration of a test.
package lab
