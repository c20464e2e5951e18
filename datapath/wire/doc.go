// SPDX-License-Identifier: Apache-2.0

// Package wire defines the packet formats of RoCEv2 and the types of their fields (QPN, PSN, QKey,
// PKey, GID).
//
// A frame, with the view types of its headers:
//
//	Ethernet 14 [+4 a VLAN tag, two at most]
//	IPv4 20 (no options) | IPv6 40      in RoCEv2 this header is the GRH
//	UDP 8, destination port 4791
//	BTH 12                              opcode, P_Key, destination QP, PSN; see BTH.Packets
//	DETH 8 | [XRCETH 4] RETH | AETH | … by opcode, see the table in opcode.go
//	[immediate data 4]
//	payload
//	pad 0 to 3                          (−length) & 3 zero bytes
//	ICRC 4                              covers all from the IP header on; see Packet.Unsealed
//
// Receiving: Parse checks every length, and every field on which the layout depends, once; afterwards no accessor can
// fail. CheckICRC then reports whether the frame is intact. Both are called once per packet, also if several queue
// pairs receive it.
//
// Sending: a Template holds the headers that all packets to one destination share. The caller first
// writes the payload, at PayloadOffset; then Template.Seal writes the headers, the pad and the ICRC
// around it.
//
// Management datagrams are payloads of packets to QP 1. A MAD is a view of one; each message of
// connection management is a struct, which the MAD's methods read and write (cm.go, sidr.go).
//
// The package imports no other package of this module, has no mutable global state and no locks, and does not allocate
// memory, except in Numbering. A Packet borrows the frame from which it was parsed. The caller must not change the
// frame while the Packet is in use. CheckICRC writes to the frame and restores it before it returns.
//
// The extended headers of RD are not parsed: only their lengths are checked, and the engine drops RD packets as
// unsupported. MADs of classes other than connection management are not parsed either.
//
// Sources: InfiniBand Architecture Specification volume 1, chapters 7 to 9, 12 and 13,
// annexes A11 (IP addresses in connection management), A14 (XRC), A16 (RoCE) and A17 (RoCEv2); RFC 791, 768, 8200.
package wire
