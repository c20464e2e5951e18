// SPDX-License-Identifier: Apache-2.0

// Package udplink implements a link over UDP sockets: a card's packets are sent and received as datagrams of port 4791,
// and the kernel implements the lower layers. It needs no privileges, no kernel program, and no particular type of
// interface.
//
//	engine ◄── Next ──── rows: consecutive packets, separated in place ◄── recvmmsg ──┬─ Socket of an own address
//	                     (UDP_GRO: up to 64 KiB of one flow)                          ├─ Socket of an own address
//	                                                                                  └─ Socket of a group
//	engine ──► Commit ── a train: consecutive packets of one flow and length ──► sendmmsg ──► a sending socket
//	                     (UDP_SEGMENT: the kernel segments it, as late as possible)
//
// The engine's frames have Ethernet, IP and UDP headers. To send a frame, the link reads the addresses from these, and
// the kernel writes its own headers. The link writes headers before each received packet. They overwrite the end of the
// previous packet, which the engine has already processed. Fields that the kernel does not report are zero: MACs, VLAN,
// flow label.
//
// The ICRC covers the IPv4 identification, which the kernel assigns. Packets of an unconnected socket that sets Don't
// Fragment get 0, and the packets of a train get 0, 1, 2 and so on (probe.go checks this). The ICRC of a train's
// packets is therefore corrected before they are sent. The kernel does not report the identification of received
// packets; it is guessed, or else computed from the ICRC, as package wire explains (Numbering). IPv6 has no
// identification.
//
// Any goroutine may open sockets and read Counters. All other methods are called under the engine's lease, which guards
// all state.
//
// The selection of addresses and groups that have sockets is in verbs/hca/udpnet.
// Sources: udp(7), ip(7), ipv6(7).
package udplink
