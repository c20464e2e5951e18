// Package udplink is a link over UDP sockets: a card's packets leave and arrive as datagrams of port 4791, and the
// kernel does the rest of the network. It needs no privilege, no program in the kernel, and no interface of a kind.
//
//	engine ◄── Next ──── a batch: packets in a row, taken apart in place ◄── recvmmsg ──┬─ Socket of an own address
//	                     (UDP_GRO: up to 64 KiB of one flow, never cut)                 ├─ Socket of an own address
//	                                                                                    └─ Socket of a group
//	engine ──► Commit ── a train: packets of one flow and length in a row ──► sendmmsg ──► a port to send from
//	                     (UDP_SEGMENT: the kernel cuts it, at the receiver if it can)
//
// The engine's frames have Ethernet, IP and UDP headers. To send, they are read for the addresses, and dropped: the
// kernel writes its own. For a packet that arrived they are written in front of it, over the end of the packet before,
// which the engine is done with. What the kernel does not tell is zero in them: MACs, VLAN, flow label.
//
// The ICRC covers IPv4's identification, which the kernel writes. An unconnected socket that sets Don't Fragment gets 0,
// and the packets of a train get 0, 1, 2 and so on (numbering.go checks that). So the ICRC of a train's
// packets is corrected before they leave. The identification of a packet that arrives is not seen; it is guessed, and
// otherwise found from the ICRC, as package wire explains (Numbering). IPv6 has none.
//
// Sockets are opened by any goroutine. All else is called under the engine's lease, which guards all state;
// Counters may be read by any goroutine.
//
// Left out: which addresses and groups there are to be sockets for (verbs/hca/udpnet).
// Sources: udp(7), ip(7), ipv6(7).
package udplink
