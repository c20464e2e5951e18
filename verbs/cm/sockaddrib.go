// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// SockaddrIB is an address of family AF_IB (sockaddr_ib): a GID and a service id. On Ethernet a GID is an IP address,
// and a service id a port space and a port, so it corresponds to a netip.AddrPort in the id's port space.
type SockaddrIB struct {
	Addr          verbs.GID
	ServiceID     uint64 // port space << 16 | port, masked by ServiceIDMask
	ServiceIDMask uint64 // 0 means all bits
	PKey          uint16 // 0 or 0xFFFF, the only P_Key
	FlowInfo      uint32 // ignored, as by the kernel
	ScopeID       uint64 // ignored
}

// SockaddrIBOf converts an address and a port in a port space, for example of GetAddrInfo, to family AF_IB.
func SockaddrIBOf(space PortSpace, a netip.AddrPort) SockaddrIB {
	return SockaddrIB{Addr: gidOf(a.Addr()), ServiceID: uint64(space)<<16 | uint64(a.Port()), ServiceIDMask: ^uint64(0), PKey: 0xFFFF}
}

// AddrPort converts the address to an IP address and port. GID 0 means all addresses, of IPv6. A link-local address
// gets the zone, which is the interface's name.
//
// EPROTONOSUPPORT for an address of another port space, as in the kernel; verbs.ErrInvalid for an unknown P_Key.
func (s SockaddrIB) AddrPort(space PortSpace, zone string) (netip.AddrPort, error) {
	mask := s.ServiceIDMask
	if mask == 0 {
		mask = ^uint64(0)
	}
	switch {
	case s.ServiceID>>16&(mask>>16) != uint64(space)&(mask>>16):
		return netip.AddrPort{}, fmt.Errorf("%w: %w: service id 0x%x is none of port space %v", verbs.ErrInvalid, unix.EPROTONOSUPPORT, s.ServiceID, space)
	case s.PKey != 0 && s.PKey&0x7FFF != 0x7FFF:
		return netip.AddrPort{}, fmt.Errorf("%w: P_Key 0x%04x; there is the default one", verbs.ErrInvalid, s.PKey)
	}
	address := s.Addr.Addr()
	if address.Is6() && address.IsLinkLocalUnicast() {
		address = address.WithZone(zone)
	}
	return netip.AddrPortFrom(address, uint16(s.ServiceID&mask)), nil
}

// BindIB is Bind for an address of AF_IB.
func (i *ID) BindIB(to SockaddrIB) error {
	if i == nil {
		return fmt.Errorf("bind: %w", errNil)
	}
	address, err := to.AddrPort(i.space, i.zone(to.Addr))
	if err != nil {
		return fmt.Errorf("bind id: %w", err)
	}
	return i.Bind(address)
}

// ResolveAddrIB is ResolveAddr for addresses of AF_IB. A zero source lets the host choose it.
func (i *ID) ResolveAddrIB(source, dest SockaddrIB, timeout time.Duration) error {
	if i == nil {
		return fmt.Errorf("resolve address: %w", errNil)
	}
	var from netip.AddrPort
	to, err := dest.AddrPort(i.space, i.zone(source.Addr))
	if err == nil && source != (SockaddrIB{}) {
		from, err = source.AddrPort(i.space, i.zone(source.Addr))
	}
	if err != nil {
		return fmt.Errorf("resolve address: %w", err)
	}
	return i.ResolveAddr(from, to, timeout)
}

// LocalAddrIB is LocalAddr as an address of AF_IB.
func (i *ID) LocalAddrIB() (SockaddrIB, error) {
	a, err := i.LocalAddr()
	return i.sockaddrIB(a), err
}

// PeerAddrIB is PeerAddr as an address of AF_IB.
func (i *ID) PeerAddrIB() (SockaddrIB, error) {
	a, err := i.PeerAddr()
	return i.sockaddrIB(a), err
}

func (i *ID) sockaddrIB(a netip.AddrPort) (s SockaddrIB) {
	if a.IsValid() {
		s = SockaddrIBOf(i.space, a)
	}
	return s
}

// zone returns the interface of the first device that has a link-local GID.
func (i *ID) zone(gid verbs.GID) string {
	if !gid.IsLinkLocal() {
		return ""
	}
	for _, ctx := range i.Channel().Devices() {
		table, err := ctx.QueryGIDTable(1)
		if err != nil {
			continue
		}
		for _, entry := range table {
			if entry.GID == gid {
				return entry.Interface
			}
		}
	}
	return ""
}
