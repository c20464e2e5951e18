// Package mcast holds what multicast needs beside the datapath: addresses, the group
// table, and the host's memberships.
//
//	IP address ◄──► MGID ──► MAC                      mgid.go
//
//	attach ──► Table: MGID, MLID ──► queue pairs      groups.go    who receives here
//	             │ Members, replaced never changed
//	             ▼
//	           the engine, between two bursts
//
//	join ────► Memberships: address, counted          memberships.go   what switches hear
//	             ├── netlink: the group's address, IFA_F_MCAUTOJOIN    address.go
//	             └── socket: one a group, never bound to a port        socket.go
//	                    └──► IGMP, MLD by the kernel
//
// The two halves know nothing of each other, as in the kernel: an attach makes the host
// no member, and a join delivers nothing. A send-only member is in neither.
//
// A Table has rdmavt's rules and return values, and no lock: the card's control
// plane calls it under its own. Memberships have their own lock, and one goroutine that
// puts back what others take away; they own their addresses and sockets, and the
// records of the former that outlive a kill (internal/journal).
//
// A group's address is never the interface's first (place.go): behind the host's own, or while
// the interface has none, a socket stands in. Somebody who removes the address again and again
// has his way: a socket joins then.
//
// Left out: what the kernel says on the wire (it speaks IGMPv1 to 3 and MLDv1 and 2 by
// itself), source-specific groups, multicast routing. In the few microseconds between a group's
// address and the removal of its local route the host's own messages to it can go to lo; and
// when the host's own address goes and comes back, the group's is the first until that is seen.
package mcast
