// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// ServiceID identifies the requested service in connection management. The service IDs of rdma_cm consist of a port
// space and a port (IBA A11.2).
type ServiceID uint64

// PortSpace is a port space of rdma_cm (enum rdma_ucm_port_space).
type PortSpace uint16

// The port spaces.
const (
	PortSpaceIPoIB PortSpace = 0x0002
	PortSpaceTCP   PortSpace = 0x0106 // connections
	PortSpaceUDP   PortSpace = 0x0111 // datagrams
	PortSpaceIB    PortSpace = 0x013F
)

// String returns the port space's name.
func (p PortSpace) String() string {
	switch p {
	case PortSpaceIPoIB:
		return "IPOIB"
	case PortSpaceTCP:
		return "TCP"
	case PortSpaceUDP:
		return "UDP"
	case PortSpaceIB:
		return "IB"
	}
	return fmt.Sprintf("port space 0x%04x", uint16(p))
}

// ServiceIDFor returns the service ID of a port in a port space.
func ServiceIDFor(space PortSpace, port uint16) ServiceID {
	return ServiceID(space)<<16 | ServiceID(port)
}

// Port returns the port in the service ID.
func (s ServiceID) Port() uint16 { return uint16(s) }

// PortSpace returns the port space in the service ID. For service IDs that are not those of rdma_cm it may be any
// number.
func (s ServiceID) PortSpace() PortSpace { return PortSpace(s >> 16) }

// String returns the ID in hexadecimal.
func (s ServiceID) String() string { return fmt.Sprintf("0x%016x", uint64(s)) }

// CMAddressLen is the length of the address header, in bytes. The private data of rdma_cm's requests for a service in a
// port space begins with this header (IBA A11.3).
const CMAddressLen = 36

const (
	cmAddressVersion     = 0  // 1 byte: 0
	cmAddressIPVersion   = 1  // 4 bits, the upper ones: 4 or 6
	cmAddressPort        = 2  // 2 bytes: of the sender
	cmAddressSource      = 4  // 16 bytes; IPv4 in the last four
	cmAddressDestination = 20 // 16 bytes
	cmAddressIPv4        = 12 // offset in an address, for IPv4

	cmAddressNow = 0 // the current version
)

// CMAddress holds the fields of the address header: the requester's address (Source), and the requested address. The
// destination's port is in the service ID.
type CMAddress struct {
	Source      netip.AddrPort
	Destination netip.Addr
}

// CMAddressOf reads the header in private data of at least CMAddressLen bytes. ok is false for another version of the
// header, or an unknown IP version.
func CMAddressOf(data []byte) (a CMAddress, ok bool) {
	port := binary.BigEndian.Uint16(data[cmAddressPort:])
	source, dest := [16]byte(data[cmAddressSource:]), [16]byte(data[cmAddressDestination:])
	version := bitsHigh4.get(data[cmAddressIPVersion])
	switch {
	case data[cmAddressVersion] != cmAddressNow:
		return a, false
	case version == 4:
		a.Source = netip.AddrPortFrom(netip.AddrFrom4([4]byte(source[cmAddressIPv4:])), port)
		a.Destination = netip.AddrFrom4([4]byte(dest[cmAddressIPv4:]))
		return a, true
	case version == 6:
		a.Source, a.Destination = netip.AddrPortFrom(netip.AddrFrom16(source), port), netip.AddrFrom16(dest)
		return a, true
	}
	return a, false
}

// Put writes the header, CMAddressLen bytes. Both addresses have the same IP version; zones are omitted.
func (a *CMAddress) Put(data []byte) {
	clear(data[:CMAddressLen])
	source, dest := a.Source.Addr(), a.Destination
	binary.BigEndian.PutUint16(data[cmAddressPort:], a.Source.Port())
	if source.Is4() {
		data[cmAddressIPVersion] = bitsHigh4.put(4)
		copy(data[cmAddressSource+cmAddressIPv4:], source.AsSlice())
		copy(data[cmAddressDestination+cmAddressIPv4:], dest.AsSlice())
		return
	}
	data[cmAddressIPVersion] = bitsHigh4.put(6)
	copy(data[cmAddressSource:], source.AsSlice())
	copy(data[cmAddressDestination:], dest.AsSlice())
}
