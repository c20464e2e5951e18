// Package membership makes the host a member of multicast groups, so that switches send their
// packets here.
//
//	join ────► Memberships: address, counted          memberships.go   what switches hear
//	             ├── netlink: the group's address, IFA_F_MCAUTOJOIN    address.go
//	             └── socket: one a group, never bound to a port        socket.go
//	                    └──► IGMP, MLD by the kernel
//
// A join delivers nothing: that is an attach (mcast). A send-only member is no member here.
//
// Memberships have their own lock, and one goroutine that puts right what others change. It is told
// what to look at by the namespace's follower (internal/host) and believes nothing but what it
// sees then: the interface, its addresses, the groups that the kernel is in (follow.go, sight.go,
// repair.go). A look that fails changes nothing, and is made again. They own their addresses and
// sockets, and the records of the former that outlive a kill (internal/journal).
//
// A group's address is never the interface's first (place.go): behind the host's own, or while
// the interface has none, a socket stands in. Somebody who removes the address again and again
// has his way: a socket joins then.
//
// Left out: what the kernel says on the wire (it speaks IGMPv1 to 3 and MLDv1 and 2 by
// itself), source-specific groups, multicast routing. The kernel's lists do not say for whom it is
// in a group: where it leaves one for us alone, while another program is in it too, and what made
// it leave is over before it is seen, the group counts as joined. In the few microseconds
// between a group's address and the removal of its local route the host's own messages to it can
// go to lo; and when the host's own address goes and comes back, the group's is the first until
// that is seen.
package membership
