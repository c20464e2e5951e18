// SPDX-License-Identifier: Apache-2.0

package link

import (
	"encoding/binary"
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

// Packets is an AF_PACKET socket (packet(7)) that sends trains on an interface. A train consists of several frames that
// are passed to the kernel in one call, as one long UDP packet, which the kernel or the NIC segments again (UDP GSO).
// The socket receives nothing.
//
// The long packet is preceded by a header (struct virtio_net_hdr) that specifies the segmentation:
//
//	0        1         2       4            6              8          10
//	┌────────┬─────────┬───────┬────────────┬──────────────┬──────────┬───────────────────┬──────────┬─────┐
//	│ flags  │ GSO     │ header│ bytes of a │ where the    │ offset of│ Ethernet, IP, UDP │ BTH…ICRC │ … n │
//	│        │ type    │ length│ segment    │ checksum     │ the sum  │ of the train      │ of one   │     │
//	│        │         │       │            │ starts: UDP  │ in it    │                   │ packet   │     │
//	└────────┴─────────┴───────┴────────────┴──────────────┴──────────┴───────────────────┴──────────┴─────┘
//
// Each resulting packet has the train's headers, except for the lengths, the checksums, and the IPv4 identification,
// which is incremented with each packet.
type Packets struct {
	fd      int
	message gather
	flags   *unix.Ifreq // to read the interface's flags
	header  [vnetHeader + maxFrameHeader]byte
}

const (
	vnetHeader     = 10
	maxFrameHeader = wire.EthernetLen + wire.VLANLen + wire.IPv6Len + wire.UDPLen

	vnetNeedsChecksum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	vnetUDPSegments   = 5 // VIRTIO_NET_HDR_GSO_UDP_L4, Linux 6.2

	// sendBuffer is the requested size of the send buffer, in bytes of kernel memory. It limits the packets in the
	// interface's queueing discipline.
	sendBuffer = 8 << 20
)

// OpenPackets opens a socket on an interface in the network namespace of the calling thread. It requires CAP_NET_RAW.
func OpenPackets(ifindex int) (*Packets, error) {
	// Without a protocol the socket receives nothing.
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("AF_PACKET socket: %w", err)
	}
	p := &Packets{fd: fd}
	// Without CAP_NET_ADMIN the system's limit applies.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, sendBuffer) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	}
	if err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1); err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: ifindex})
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("AF_PACKET socket on interface %d: %w", ifindex, err)
	}
	return p, nil
}

// Close closes the socket.
func (p *Packets) Close() error { return unix.Close(p.fd) }

// empty reports whether all sent packets have left the host's queues.
func (p *Packets) empty() bool {
	waiting, err := unix.IoctlGetInt(p.fd, unix.SIOCOUTQ)
	return err == nil && waiting == 0
}

// running reports whether an interface is up and has a carrier. It returns true if the flags cannot be read.
func (p *Packets) running(name string) bool {
	if p.flags == nil || p.flags.Name() != name {
		var err error
		if p.flags, err = unix.NewIfreq(name); err != nil {
			return true
		}
	}
	err := unix.IoctlIfreq(p.fd, unix.SIOCGIFFLAGS, p.flags)
	return err != nil || p.flags.Uint16()&unix.IFF_RUNNING != 0
}

// sendTrain sends frames as one train. Each frame must follow the previous one (see headers.follows).
func (p *Packets) sendTrain(frames []committed) unix.Errno {
	first := frames[0].frame
	at := headersOf(first)
	length := 0
	for i := range frames {
		length += len(frames[i].frame) - at.payload
	}
	header := p.header[:vnetHeader+copy(p.header[vnetHeader:], first[:at.payload])]
	at.setLengths(header[vnetHeader:], length)
	p.describe(at, len(first)-at.payload)
	p.message.reset()
	p.message.add(header)
	for i := range frames {
		p.message.add(frames[i].frame[at.payload:])
	}
	return p.message.send(p.fd)
}

// describe writes the virtio_net_hdr. Its numbers are in host byte order.
func (p *Packets) describe(at headers, segment int) {
	p.header[0], p.header[1] = vnetNeedsChecksum, vnetUDPSegments
	host := binary.NativeEndian
	host.PutUint16(p.header[2:], uint16(at.payload))
	host.PutUint16(p.header[4:], uint16(segment))
	host.PutUint16(p.header[6:], uint16(at.udp))
	host.PutUint16(p.header[8:], 6)
}

// sendOne sends a single frame.
func (p *Packets) sendOne(frame []byte) unix.Errno {
	clear(p.header[:vnetHeader])
	p.message.reset()
	p.message.add(p.header[:vnetHeader])
	p.message.add(frame)
	return p.message.send(p.fd)
}
