// SPDX-License-Identifier: Apache-2.0

// Package membership makes the host a member of multicast groups, so that switches forward the
// groups' packets to it.
//
//	join ────► Memberships: address, counted          memberships.go
//	             ├── netlink: the group's address, IFA_F_MCAUTOJOIN    address.go
//	              └── socket: one per group, never bound to a port      socket.go
//	                    └──► IGMP, MLD by the kernel
//
// A join alone delivers no packets to a queue pair: an attach does that (mcast). A send-only member
// does not join here.
//
// A Memberships has its own lock, and one goroutine that repairs changes by other programs. The
// namespace's follower (internal/host) notifies it of possible changes. It then reads the current
// state: the interface, its addresses, the groups that the kernel has joined (follow.go, snapshot.go,
// repair.go). If that fails, it changes nothing and retries. A Memberships owns its
// addresses and sockets. A record of the addresses outlives a kill (internal/journal).
//
// A group's address is never the first address of the interface (place.go). It follows the
// host's own addresses; while the interface has none, a socket is used instead. A socket is also
// used if another program removes the address repeatedly.
//
// Out of scope: IGMP and MLD messages (the kernel sends IGMPv1 to 3 and MLDv1 and 2), source-specific groups, multicast routing.
//
// Known limits: The kernel's lists do not state which program is a member of a group. If the kernel leaves a group only
// for us while another program remains a member, and the cause ends before it is detected, the group counts as joined.
// In the few microseconds between adding a group's address and removing its local route, the host's own messages to the
// group can be sent through lo. When the host's own address is removed and added again, the group's address is the
// first until the change is processed.
package membership
