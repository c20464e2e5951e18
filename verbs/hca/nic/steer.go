//go:build linux

package nic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/roced/roced/bpf"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
)

// filter is the steering program as a card sees it: network.Steering.
type filter struct{ steering *bpf.Steering }

// limited says that a table of the program that is full is a limit.
func limited(err error) error {
	if errors.Is(err, bpf.ErrTableFull) {
		return fmt.Errorf("%w: %w", verbs.ErrLimit, err)
	}
	return err
}

// The methods implement network.Steering.
func (f filter) AddQP(number uint32) error              { return limited(f.steering.AddQP(number)) }
func (f filter) RemoveQP(number uint32) error           { return f.steering.RemoveQP(number) }
func (f filter) AddAddress(address netip.Addr) error    { return limited(f.steering.AddAddress(address)) }
func (f filter) RemoveAddress(address netip.Addr) error { return f.steering.RemoveAddress(address) }
func (f filter) AddBroadcast(address netip.Addr) error {
	return limited(f.steering.AddBroadcast(address))
}
func (f filter) RemoveBroadcast(address netip.Addr) error { return f.steering.RemoveBroadcast(address) }
func (f filter) SetMACs(macs ...[6]byte) error            { return f.steering.SetMACs(macs...) }
func (f filter) AddGroup(group netip.Addr) error          { return limited(f.steering.AddGroup(group)) }
func (f filter) RemoveGroup(group netip.Addr) error       { return f.steering.RemoveGroup(group) }

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
func (i *Interface) macsOf(own wire.MAC, below host.Link) []wire.MAC {
	if i.generic != nil {
		return nil
	}
	macs := []wire.MAC{own}
	if i.base == nil {
		return macs
	}
	if address := below.Attrs().HardwareAddr; len(address) == len(own) {
		macs = append(macs, wire.MAC(address))
	}
	return macs
}
