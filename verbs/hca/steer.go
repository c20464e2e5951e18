//go:build linux

package hca

import (
	"encoding/binary"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
)

// broadcastsOf are the broadcast addresses that the kernel derives from the interface's own
// addresses (fib_add_ifaddr in net/ipv4/fib_frontend.c).
func broadcastsOf(list []host.Address) (all []netip.Addr) {
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

// lastOf is the highest address of an IPv4 subnet.
func lastOf(address netip.Addr, prefix int) netip.Addr {
	ip := address.As4()
	last := binary.BigEndian.Uint32(ip[:]) | (1<<(32-prefix) - 1) // | binds no tighter than -
	binary.BigEndian.PutUint32(ip[:], last)
	return netip.AddrFrom4(ip)
}

// macsOf are the destination MACs that the kernel accepts on the interface: its own and, for a VLAN,
// that of the interface below. A bond accepts its slaves' too, which can change at any time
// (balance-alb), so for a bond the list is empty: any MAC.
func (h *kernelHost) macsOf(own wire.MAC, below host.Link) []wire.MAC {
	if h.anyMAC {
		return nil
	}
	macs := []wire.MAC{own}
	if h.base == nil {
		return macs
	}
	if address := below.Attrs().HardwareAddr; len(address) == len(own) {
		macs = append(macs, wire.MAC(address))
	}
	return macs
}
