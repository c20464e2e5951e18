// Package lab makes network namespaces and joins them with veth pairs, or by a
// bridge that snoops, for tests, the demo and benchmarks. It speaks netlink and runs
// no other program.
//
//	 /run/netns/PREFIX-PID-1            /run/netns/PREFIX-PID-2
//	┌────────────────────────┐         ┌────────────────────────┐
//	│ Namespace a            │  Veth   │            Namespace b │
//	│ lo     10.77.0.1/24  eth0 ─────── eth0  10.77.0.2/24   lo │
//	└────────────────────────┘         └────────────────────────┘
//	     ▲ Do: a function runs inside, then the thread goes back
//
//	Bridge: any number of such hosts, a port each; IGMP and MLD snooping, a querier
//
// Namespaces are named as ip-netns(8) does it, so that "ip netns exec NAME" works
// on them. Links are created inside their namespaces, never outside. IPv6 duplicate
// address detection is off: an address can be used at once.
//
// A Namespace belongs to the one who made it; Close removes it, and with it all
// links in it. A killed process cannot: Prune removes what it left, at the next
// start. Methods may be called from several goroutines, Close only when the others
// are done.
//
// Left out: anything that is not needed to join hosts. Subpackage labtest ties
// namespaces to a test's life.
package lab
