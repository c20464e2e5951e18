// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Address is an address of the interface.
type Address struct {
	IP     netip.Addr
	Prefix int    // length, in bits
	Flags  uint32 // IFA_F_*
	Label  string // ip-address(8); empty for IPv6
	// Broadcast is the configured broadcast address; invalid if not set.
	Broadcast netip.Addr
}

// Usable reports whether packets can be sent from and to the address: duplicate address detection has
// completed and has not failed. A group address, which makes the host a member (ip-address(8), autojoin), is
// never usable.
func (a Address) Usable() bool {
	return a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) == 0 && !a.IP.IsMulticast()
}

// Addresses lists the addresses of the interface, in the kernel's order.
func (q *Queries) Addresses() (all []Address, err error) {
	filter := nl.NewIfAddrmsg(unix.AF_UNSPEC)
	filter.Index = uint32(q.index)
	answers, err := q.list(unix.RTM_GETADDR, unix.RTM_NEWADDR, filter)
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	for _, data := range answers {
		// A kernel that does not filter lists the addresses of all interfaces.
		if len(data) < unix.SizeofIfAddrmsg || interfaceOf(data) != q.index {
			continue
		}
		if a, ok := parseAddress(data); ok {
			all = append(all, a)
		}
	}
	return all, nil
}

// parseAddress reads an ifaddrmsg. With a peer address, IFA_LOCAL is the interface's own address.
func parseAddress(data []byte) (a Address, ok bool) {
	attributes := data[unix.SizeofIfAddrmsg:]
	ip := attribute(attributes, unix.IFA_LOCAL)
	if ip == nil {
		ip = attribute(attributes, unix.IFA_ADDRESS)
	}
	address, ok := netip.AddrFromSlice(ip)
	a = Address{IP: address.Unmap(), Prefix: int(data[1]), Flags: uint32(data[2])}
	a.Broadcast, _ = netip.AddrFromSlice(attribute(attributes, unix.IFA_BROADCAST))
	a.Label = strings.TrimRight(string(attribute(attributes, unix.IFA_LABEL)), "\x00")
	if flags := attribute(attributes, unix.IFA_FLAGS); len(flags) == 4 {
		a.Flags = binary.NativeEndian.Uint32(flags)
	}
	return a, ok
}

// Broadcasts returns the broadcast addresses that the kernel derives from the interface's addresses
// (fib_add_ifaddr in net/ipv4/fib_frontend.c).
func Broadcasts(list []Address) (all []netip.Addr) {
	seen := map[netip.Addr]bool{}
	add := func(address netip.Addr) {
		if address.Is4() && !seen[address] && !address.IsMulticast() && !address.IsUnspecified() {
			seen[address] = true
			all = append(all, address)
		}
	}
	for _, a := range list {
		add(a.Broadcast)
		if a.IP.Is4() && a.Prefix < 31 {
			add(lastOf(a.IP, a.Prefix))
		}
	}
	return all
}

// lastOf returns the highest address of an IPv4 subnet.
func lastOf(address netip.Addr, prefix int) netip.Addr {
	ip := address.As4()
	last := binary.BigEndian.Uint32(ip[:]) | (1<<(32-prefix) - 1) // | and - have the same precedence
	binary.BigEndian.PutUint32(ip[:], last)
	return netip.AddrFrom4(ip)
}
