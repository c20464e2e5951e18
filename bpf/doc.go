// SPDX-License-Identifier: Apache-2.0

// Package bpf steers RoCEv2 packets past the network stack. It contains an XDP program in C, the program's tables, and
// the loader.
//
//	frame ──► parse_ethernet   not our VLAN ─────────────────────► PASS
//	            │ parse_ipv4/6   not IP, a fragment ─────────────► PASS
//	            │ parse_udp        not port 4791 ────────────────► PASS
//	            ▼
//	own_addresses, groups ──► check_destination   not ours ──────► PASS
//	own_macs ──► check_mac         another host's ───────────────► PASS
//	            check_lengths      malformed ────────────────────► DROP
//	own_tails ─► check_source      ours, a group, martian ───────► DROP
//	queue_pairs ─► check_queue_pair  unknown ────────────────────► DROP
//	rings ─────► redirect          no socket on this queue ──────► DROP
//	            ▼
//	            AF_XDP socket of the receiving queue ────────────► REDIRECT
//	                               refused: redirect.bpf.c ──────► DROP
//
// Each packet has exactly one Verdict, and each Verdict has one counter. Packets that pass may be for the network
// stack, a bridge or a macvlan child. Only packets for this card are dropped. The checks are a filter, and the engine
// repeats them. Packets for this card with IPv4 options are dropped. Packets with IPv6 extension headers pass, since
// their next header is not UDP.
//
// # Tables
//
// The key of an address or group has 20 bytes. MACs are not used as keys, since 32 IPv4 groups share one:
//
//	0  vlan       2  host order; 0: untagged
//	2  ethertype  2  host order; 0x0800 or 0x86DD
//	4  ip        16  IPv4 as ::ffff:a.b.c.d, as in a GID
//
// queue_pairs has one bit for each of the 2²⁴ numbers: number n is bit n%64 of word n/64. own_addresses also contains
// the broadcast addresses of the card's subnets, and the value of an entry is its role. own_tails has a bit for each
// value of the last 16 bits of an address, so that nearly all packets avoid a second hash lookup for their source.
//
// The tables have a capacity of 16384 groups, 16384 addresses and broadcasts together, and as many rings as the
// interface can have queues. A card uses 2.2 MiB of kernel memory, and about 100 bytes for each address and group.
//
// # Checks of the kernel's input path
//
// XDP runs before ip_rcv and ip6_rcv, so the program makes their checks for the packets that it steers:
//
//	unicast frame to another MAC         PASS: the kernel drops it, or a child interface receives it
//	unicast packet to a group's MAC      steered: the kernel accepts it (drop_unicast_in_l2_multicast is off)
//	source a group, 0.0.0.0, 127.0.0.0/8, 255.255.255.255, ::1    DROP
//	source ::ffff:a.b.c.d in IPv6        DROP, although some kernels accept it: no IPv4 host sends it
//	source a broadcast of our subnets    DROP: the kernel drops it with rp_filter
//	source ::                            DROP, although the kernel accepts it: no response is possible
//	source our own address               DROP; an address of another interface of the host is accepted
//	source 0.0.0.1, 240.0.0.1            steered: the kernel accepts it since Linux 5.3
//	group of scope 0 or 1 (ff00::, ff01::)    PASS: the kernel drops it
//	IPv4 header checksum                 not checked here: the engine checks it
//	TTL or hop limit 0                   steered: the kernel checks it only when it forwards
//	UDP checksum                         not checked: RoCEv2 has an ICRC over the same bytes, and
//	                                     most senders write 0, which the kernel refuses in IPv6
//	rp_filter, routes, nftables          not applied: an address does not authenticate a sender;
//	                                     the Q_Key does
//
// # Ownership
//
// A Steering owns the program, the tables and the attachment. Close frees them. Its lock protects the attachment and
// the tables with a copy in Go. The sockets in rings belong to the callers. The program only reads the tables. Only
// programs write the counters, which are per CPU. A second program, on the tracepoint xdp_redirect_err, counts packets
// that the kernel could not redirect, see Uncounted.
//
// Only Load requires capabilities.
//
// # Out of scope
//
// VLAN tags that the NIC has stripped are invisible to the program (disable this with ethtool -K DEV rxvlan off). The
// engine checks Q_Key, P_Key, ICRC and opcodes, from which the program only derives the length of the headers. A card
// has one VLAN. The program cannot be chained with another XDP program. It is not pinned, so it is detached when its
// process ends.
//
// The C sources are GPL-2.0-only OR BSD-2-Clause. The objects that "go generate" builds from them (with clang 14, and
// the headers of libbpf and the kernel) are committed.
package bpf
