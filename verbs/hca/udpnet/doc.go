// Package udpnet is an interface of this host as a card's network (network.Host), over UDP sockets: without any
// privilege, on any kind of interface, and on any kernel that has UDP.
//
//	Open ─► the interface, a socket for each of its addresses, ports to send from; how the kernel numbers packets
//	Host
//	   ├─ Port ──────────────► netlink
//	   ├─ AddAddress ────────► a socket (addresses.go)
//	   ├─ Join, AddGroup ────► a socket that joins; the kernel sends the reports (groups.go)
//	   ├─ Route ─────────────► the kernel's routes; neighbours are the kernel's affair
//	   └─ Close: the sockets, and with them the memberships
//
// What is weaker than with XDP (package nic): the kernel's own path of each message is longer; source MAC, VLAN and flow
// label of what arrives are not seen; of the ICRC's 32 bits, 17 are spent on fields that are not seen either
// (wire.Numbering); and it is not known whether a neighbour answers. What is better: packets in a row cross the
// kernel as one, the cards of one host reach each other, and the host's other users of the network notice nothing.
//
// A card on one interface has the port of that interface's addresses only. So several cards, one on each interface, go
// together; a kernel with Soft-RoCE (rdma_rxe) has the port of all addresses.
//
// Lock: mu, for sockets and groups. The engine's lease is taken under it, and no other lock.
//
// Left out: VLANs and other tags (the kernel's interfaces have them), neighbours, routers' reports (anybody can
// forge them; the administrator can give a route an MTU, which the card follows).
package udpnet
