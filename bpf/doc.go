// Package bpf steers RoCEv2 packets past the network stack: an XDP program in C, the
// tables it decides by, and the loader.
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
// n/64. own_addresses holds the broadcasts of the device's subnets too, as a role. own_tails
// has a bit for each value of an address's last 16 bits, and spares nearly all packets a
// second hash lookup, of their source.
//
// There is room for 16384 groups, for 16384 addresses and broadcasts, and for as many rings
// as the interface has queues when the device is opened. A device takes 2.2 MiB of kernel
// memory, and about 100 bytes for each address and group.
//
// # What the kernel's input checks
//
// XDP comes before ip_rcv and ip6_rcv. What they would refuse is refused here:
//
//	frame to another's unicast MAC       PASS: the kernel drops it, or another takes it
//	unicast in a group's MAC             taken, as by the kernel (drop_unicast_in_l2_multicast is off)
//	source a group, 0.0.0.0, 127.0.0.0/8, 255.255.255.255, ::1    DROP
//	source ::ffff:a.b.c.d in IPv6        DROP, though not all kernels do: it is no IPv4 host
//	source a broadcast of our subnets    DROP, as the kernel does with rp_filter
//	source ::                            DROP, though the kernel takes it: nobody could answer
//	source our own address               DROP; of another interface of the host: taken
//	source 0.0.0.1, 240.0.0.1            taken, as by the kernel since Linux 5.3
//	group of scope 0 or 1 (ff00::, ff01::)    PASS: never steered, and the kernel drops it
//	IPv4 header checksum                 the engine's
//	TTL or hop limit 0                   taken, as by the kernel, which checks when it forwards
//	UDP checksum                         not looked at: RoCEv2 has an ICRC over the same bytes and
//	                                     most senders write 0, which the kernel refuses in IPv6
//	rp_filter, routes, nftables          not looked at: an address is no proof of who sent, and
//	                                     the Q_Key is what keeps strangers out
//
// # Who owns what
//
// A Steering owns the program, the tables and the attachment, and Close frees them.
// It has one lock, for the tables that Go keeps a copy of and for the attachment.
// The sockets in rings belong to who made them. The program only reads the tables;
// the counters only programs write, each CPU its own. A second program, on the tracepoint
// xdp_redirect_err, counts what the kernel could not redirect: see Uncounted.
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
