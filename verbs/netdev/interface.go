// SPDX-License-Identifier: Apache-2.0

package netdev

import "net/netip"

// Interface is the source and destination of a host's IP packets. TUN is the kernel's implementation; a user-space
// network stack may be another. ReadPackets and WritePacket are called from one goroutine each, the others from any.
type Interface interface {
	// Name returns the interface's name, as assigned by the kernel.
	Name() string
	// ReadPackets waits for a packet, and reads as many as are available and fit into the buffers; sizes is set to
	// their lengths in bytes. After Close it returns an error that is os.ErrClosed.
	ReadPackets(buffers [][]byte, sizes []int) (int, error)
	// WritePacket passes a packet to the host. It must not retain packet.
	WritePacket(packet []byte) error
	// Prefixes returns the interface's own addresses, with their networks' lengths.
	Prefixes() ([]netip.Prefix, error)
	// NextHop returns the next hop for a destination outside the networks.
	NextHop(to netip.Addr) (netip.Addr, error)
	// Start sets the MTU in bytes, and starts the flow of packets. It is called again when the MTU changes.
	Start(mtu int) error
	// Close ends the interface, and ReadPackets.
	Close() error
}
