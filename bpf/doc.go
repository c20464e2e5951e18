// Package bpf steers RoCEv2 packets past the network stack: an XDP program in C, the
// tables it decides by, and the loader.
//
//	frame ──► parse_ethernet   not our VLAN ─────────────────────► PASS
//	            │ parse_ipv4/6   not IP, a fragment ─────────────► PASS
//	            │ parse_udp        not port 4791 ────────────────► PASS
//	            ▼
//	own_addresses, groups ──► check_destination   not ours ──────► PASS
//	            ▼
//	            check_lengths      malformed ────────────────────► DROP
//	own_tails ─► check_source      ours, or a group ─────────────► DROP
//	queue_pairs ─► check_queue_pair  unknown ────────────────────► DROP
//	rings ─────► redirect          no socket on this queue ──────► DROP
//	            ▼
//	            AF_XDP socket of the receiving queue ────────────► REDIRECT
//
// Each packet ends in exactly one Verdict, with one counter. What passes is for the
// network stack, a bridge or a macvlan child; what drops was for us. The checks are
// a filter: the engine behind the rings repeats them. Packets with IPv4 options to
// us drop; other IPv6 extension headers pass, as they are not UDP.
//
// # Tables
//
// An address or group is a key of 20 bytes, never a MAC, which 32 IPv4 groups share:
//
//	0  vlan       2  host order; 0: untagged
//	2  ethertype  2  host order; 0x0800 or 0x86DD
//	4  ip        16  IPv4 as ::ffff:a.b.c.d, as in a GID
//
// queue_pairs has one bit for each of the 2²⁴ numbers: number n is bit n%64 of word
// n/64. own_tails has one for each value of an address's last 16 bits, and spares
// nearly all packets a second hash lookup, of their source.
//
// A device takes 2.4 MiB of kernel memory, and about 100 bytes for each group.
//
// # Who owns what
//
// A Steering owns the program, the tables and the attachment, and Close frees them.
// It has one lock, for the tables that Go keeps a copy of and for the attachment.
// The sockets in rings belong to who made them. The program only reads the tables;
// the counters it alone writes, each CPU its own.
//
// Capabilities are needed by Load alone: see there.
//
// # Left out
//
// Tags that the card has stripped are invisible here (ethtool -K DEV rxvlan off).
// Q_Key, P_Key and ICRC are the engine's business; so are opcodes, but for where the
// headers end. There is no second VLAN per device, no chaining with another XDP
// program, and no pinning: the program goes when its process goes.
//
// The C sources are GPL-2.0-only OR BSD-2-Clause. The objects made from them by
// "go generate" (clang 14, libbpf's and the kernel's headers) are committed.
package bpf
