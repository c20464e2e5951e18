// SPDX-License-Identifier: Apache-2.0

// Package udpnet implements a card's network (network.Host) on an interface of this host with UDP sockets: without
// privileges, on any kind of interface, and on any kernel with UDP.
//
//	Open ─► the interface, a socket for each of its addresses, ports to send from; how the kernel numbers packets
//	Host
//	   ├─ Port ──────────────► netlink
//	   ├─ AddAddress ────────► a socket (addresses.go)
//	   ├─ Join, AddGroup ────► a socket that joins; the kernel sends the reports (groups.go)
//	   ├─ Route ─────────────► the kernel's routes; neighbours are the kernel's affair
//	   └─ Close: the sockets, and with them the memberships
//
// Disadvantages to XDP (package nic): the kernel's path of each message is longer; the source MAC, VLAN and flow label
// of received packets are unknown; of the 32 bits of the ICRC, 17 are needed for unknown fields (wire.Numbering); and
// neighbours that do not respond are not detected. Advantages: consecutive packets cross the kernel as one, the cards
// of one host reach each other, and other users of the host's network are not affected.
//
// A card on one interface binds the port only at that interface's addresses. So several cards can coexist, one on each
// interface; a kernel with Soft-RoCE (rdma_rxe) binds the port at all addresses.
//
// Lock: mu protects sockets and groups. Under it only the engine's lease is acquired.
//
// Out of scope: VLANs and other tags (the kernel's interfaces have them), neighbours, and routers' reports (anyone can
// forge them; the administrator can set the MTU of a route, which the card follows).
package udpnet
