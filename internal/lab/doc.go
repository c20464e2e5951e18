// Package lab makes network namespaces and connects them by veth pairs, or by a bridge with IGMP
// and MLD snooping, for tests, the demo and benchmarks. It uses netlink and runs no other program.
//
//	 /run/netns/PREFIX-PID-1            /run/netns/PREFIX-PID-2
//	┌────────────────────────┐         ┌────────────────────────┐
//	│ Namespace a            │  Veth   │            Namespace b │
//	│ lo     10.77.0.1/24  eth0 ─────── eth0  10.77.0.2/24   lo │
//	└────────────────────────┘         └────────────────────────┘
//	     ▲ Do: a function runs inside, then the thread goes back
//
//	BadWire: two links of a namespace, joined by a wire that loses, repeats, damages and delays packets
//	Bridge: any number of such hosts, each on a port; IGMP and MLD snooping, a querier
//
// Namespaces are named as by ip-netns(8), so that "ip netns exec NAME" works. Links are created
// inside their namespaces, never outside. IPv6 duplicate address detection is off: an address can
// be used at once.
//
// Whoever makes a Namespace closes it; Close removes it and all links in it. A killed process
// leaves its namespaces behind; Prune removes them at the next start. Methods may be called from
// several goroutines, but Close only after all other calls have returned.
//
// Left out: everything that is not needed to connect hosts. Subpackage labtest makes namespaces
// that last as long as a test.
package lab
