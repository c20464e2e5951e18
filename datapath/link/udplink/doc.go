// SPDX-License-Identifier: Apache-2.0

// Package udplink implements a link over UDP sockets: a card's packets are sent and received as datagrams of port 4791,
// and the kernel implements the lower layers. It needs no privileges, no kernel program, and no particular type of
// interface.
//
//	engine ◄── Next ──── a batch: packets in a row, taken apart in place ◄── recvmmsg ──┬─ Socket of an own address
//	                     (UDP_GRO: up to 64 KiB of one flow, never cut)                 ├─ Socket of an own address
//	                                                                                    └─ Socket of a group
//	engine ──► Commit ── a train: packets of one flow and length in a row ──► sendmmsg ──► a port to send from
//	                     (UDP_SEGMENT: the kernel cuts it, at the receiver if it can)
//
// The engine's frames have Ethernet, IP and UDP headers. On sending, the addresses are read from them, and the kernel
// writes its own headers. A received packet gets headers in front of it, which overwrite the end of the previous
// packet: the engine has finished with that. Fields that the kernel does not report are zero: MACs, VLAN, flow label.
//
// The ICRC covers the IPv4 identification, which the kernel writes. An unconnected socket that sets Don't Fragment gets
// 0, and the packets of a train get 0, 1, 2 and so on (probe.go checks that). So the ICRC of a train's packets is
// corrected before they leave. The identification of a received packet is not reported; it is guessed, or else computed
// from the ICRC, as package wire explains (Numbering). IPv6 has none.
//
// Any goroutine may open sockets. All other methods are called under the engine's lease, which guards all state; any
// goroutine may read Counters.
//
// The selection of addresses and groups that have sockets is in verbs/hca/udpnet.
// Sources: udp(7), ip(7), ipv6(7).
package udplink
