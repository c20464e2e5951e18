// SPDX-License-Identifier: Apache-2.0

package membership

import "fmt"

// Method is how the host is made a member of a group. IPv6 groups are always joined by Socket: when
// the link goes down the kernel removes an IPv6 address with autojoin, but not its membership.
type Method int

const (
	// Auto is Netlink where that is possible, else Socket.
	Auto Method = iota
	// Netlink gives the interface the group's address, with IFA_F_MCAUTOJOIN
	// (ip-address(8), autojoin). All such addresses of a namespace share
	// net.ipv4.igmp_max_memberships, 20 by default, and net.core.optmem_max: 426 groups as Linux has it
	// before 6.8.
	Netlink
	// Socket opens a UDP socket for each group. It costs a file descriptor.
	Socket
)

var methodNames = [...]string{Auto: "auto", Netlink: "netlink", Socket: "socket"}

func (m Method) String() string {
	if m < 0 || int(m) >= len(methodNames) {
		return fmt.Sprintf("Method(%d)", int(m))
	}
	return methodNames[m]
}
