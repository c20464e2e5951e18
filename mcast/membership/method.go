// SPDX-License-Identifier: Apache-2.0

package membership

import "fmt"

// Method is the method by which the host becomes a member of a group. IPv6 groups are always joined by Socket, because
// the kernel removes an IPv6 address with autojoin, but not its membership, when the link goes down.
type Method int

const (
	// Auto is Netlink if possible, otherwise Socket.
	Auto Method = iota
	// Netlink adds the group's address to the interface, with IFA_F_MCAUTOJOIN (ip-address(8), autojoin). All such
	// addresses of a namespace share the limits net.ipv4.igmp_max_memberships, 20 by default, and net.core.optmem_max,
	// by default 426 groups before Linux 6.8.
	Netlink
	// Socket opens a UDP socket, and so a file descriptor, for each group.
	Socket
)

var methodNames = [...]string{Auto: "auto", Netlink: "netlink", Socket: "socket"}

func (m Method) String() string {
	if m < 0 || int(m) >= len(methodNames) {
		return fmt.Sprintf("Method(%d)", int(m))
	}
	return methodNames[m]
}
