// SPDX-License-Identifier: Apache-2.0

// Package membership makes the host a member of multicast groups, so that switches forward the
// groups' packets to it.
//
//	join ────► Memberships: address, counted          memberships.go
//	             ├── netlink: the group's address, IFA_F_MCAUTOJOIN    address.go
//	             └── socket: one a group, never bound to a port        socket.go
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
// Known limits: The kernel's lists do not say which program is in a group. If the kernel leaves a
// group only for us while another program stays in it, and the cause is over before it is seen, the
// group counts as joined. In the few microseconds between adding a group's address and removing its
// local route, the host's own messages to the group can go to lo. When the host's own address goes
// and comes back, the group's is the first until that is seen.
package membership
