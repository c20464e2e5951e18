// SPDX-License-Identifier: Apache-2.0

// Package bpf steers RoCEv2 packets past the network stack. It has an XDP program in C, the
// program's tables, and the loader.
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
// Each packet ends in exactly one Verdict, and each Verdict has one counter. Packets that pass may
// be for the network stack, a bridge or a macvlan child; only packets for this card are dropped.
// The checks are a filter: the engine behind the rings repeats them. Packets for this card with
// IPv4 options are dropped; packets with IPv6 extension headers pass, because they are not UDP.
//
// # Tables
//
// The key of an address or group has 20 bytes. It is never a MAC, because 32 IPv4 groups share one:
//
//	0  vlan       2  host order; 0: untagged
//	2  ethertype  2  host order; 0x0800 or 0x86DD
//	4  ip        16  IPv4 as ::ffff:a.b.c.d, as in a GID
//
// queue_pairs has one bit for each of the 2²⁴ numbers: number n is bit n%64 of word n/64.
// own_addresses also holds the broadcast addresses of the card's subnets; the value is the
// role of an entry. own_tails has a bit for each value of the last 16 bits of an address, so that nearly
// all packets need no second hash lookup for their source.
//
// There is room for 16384 groups, for 16384 addresses and broadcasts together, and for as many
// rings as the interface can have queues. A card takes 2.2 MiB of kernel memory,
// and about 100 bytes for each address and group.
//
// # Checks of the kernel's input path
//
// XDP runs before ip_rcv and ip6_rcv. So the program makes their checks for the packets it takes:
//
//	unicast frame to another MAC         PASS: the kernel drops it, or a child interface takes it
//	unicast packet to a group's MAC      taken, as by the kernel (drop_unicast_in_l2_multicast is off)
//	source a group, 0.0.0.0, 127.0.0.0/8, 255.255.255.255, ::1    DROP
//	source ::ffff:a.b.c.d in IPv6        DROP, although some kernels take it: no IPv4 host sends it
//	source a broadcast of our subnets    DROP, as the kernel does with rp_filter
//	source ::                            DROP, although the kernel takes it: it cannot be answered
//	source our own address               DROP; an address of another interface of the host is taken
//	source 0.0.0.1, 240.0.0.1            taken, as by the kernel since Linux 5.3
//	group of scope 0 or 1 (ff00::, ff01::)    PASS: never steered, and the kernel drops it
//	IPv4 header checksum                 not checked here: the engine does
//	TTL or hop limit 0                   taken, as by the kernel, which checks it when it forwards
//	UDP checksum                         not checked: RoCEv2 has an ICRC over the same bytes, and
//	                                     most senders write 0, which the kernel refuses in IPv6
//	rp_filter, routes, nftables          not applied: an address does not authenticate a sender;
//	                                     the Q_Key does
//
// # Ownership
//
// A Steering owns the program, the tables and the attachment; Close frees them. Its one lock guards
// the attachment and the tables of which Go keeps a copy. The sockets in rings belong to their
// makers. The program only reads the tables. Only programs write the counters, each CPU its own. A
// second program, on the tracepoint xdp_redirect_err, counts packets that the kernel could not
// redirect; see Uncounted.
//
// Only Load needs capabilities; see there.
//
// # Out of scope
//
// VLAN tags that the NIC has stripped are invisible here (turn that off with ethtool -K DEV rxvlan
// off). The engine checks Q_Key, P_Key and ICRC, and opcodes too: here they only say where the
// headers end. A card has no second VLAN. There is no chaining with another XDP program, and no
// pinning: the program is detached when its process ends.
//
// The C sources are GPL-2.0-only OR BSD-2-Clause. The objects made from them by
// "go generate" (clang 14, libbpf's and the kernel's headers) are committed.
package bpf
