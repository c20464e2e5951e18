package netdev

import "net/netip"

// Interface is where a host's IP packets come from and go to. TUN is the one of the kernel; a stack in user space may
// be another. ReadPackets and WritePacket are called from one goroutine each, the others from any.
type Interface interface {
	// Name is the interface's, as the kernel gave it.
	Name() string
	// ReadPackets waits for a packet, and takes as many as there are and buffers for them; sizes gets their lengths
	// in bytes. After Close it returns an error that is os.ErrClosed.
	ReadPackets(buffers [][]byte, sizes []int) (int, error)
	// WritePacket gives the host a packet, which it must not keep.
	WritePacket(packet []byte) error
	// Prefixes are the interface's own addresses, with their networks' lengths.
	Prefixes() ([]netip.Prefix, error)
	// NextHop is the neighbour by which a destination is reached that is in none of the networks.
	NextHop(to netip.Addr) (netip.Addr, error)
	// Start sets the MTU in bytes, and has packets flow. It is called again when the MTU changes.
	Start(mtu int) error
	// Close ends the interface, and ReadPackets.
	Close() error
}
