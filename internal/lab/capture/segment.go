// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// VnetHeaderLen is the length of Unfinished in bytes: struct virtio_net_hdr of a TAP.
const VnetHeaderLen = 10

// Unfinished is the work that the kernel has left to the receiver of a frame (struct virtio_net_hdr):
// computing the checksum of a datagram, and segmenting a long frame into packets.
type Unfinished [VnetHeaderLen]byte

// Train reports whether the frame contains several UDP packets (VIRTIO_NET_HDR_GSO_UDP_L4).
func (u *Unfinished) Train() bool { return u[1] == 5 }

func (u *Unfinished) number(offset int) int { return int(binary.NativeEndian.Uint16(u[offset:])) }

// Packets completes a frame as a NIC would and returns new packets: each segment with the headers of the
// frame, its lengths and checksums, and an IPv4 identification that is incremented. A frame that is not a
// train is returned unchanged except for its UDP checksum; so is a frame without UDP directly after its first
// IP header, as in a tunnel. EBADMSG means that the header does not match the frame.
func (u *Unfinished) Packets(frame []byte) (packets [][]byte, err error) {
	// The kernel's length of the headers is only a hint.
	udp, checksum := u.number(6), u.number(8)
	if u[0]&1 == 0 || checksum != 6 && !u.Train() || !isUDP(frame, udp) {
		return [][]byte{bytes.Clone(frame)}, nil
	}
	headers, segment := udp+8, len(frame)
	if u.Train() {
		segment = u.number(4)
	}
	if checksum != 6 || headers > len(frame) || segment == 0 {
		return nil, fmt.Errorf("invalid header % [2]x of a frame of %[1]d bytes: %[3]w", len(frame), u[:], unix.EBADMSG)
	}
	payload := frame[headers:]
	for len(packets) == 0 || len(payload) > 0 {
		n := min(segment, len(payload))
		packet := append(bytes.Clone(frame[:headers]), payload[:n]...)
		finish(packet, udp, len(packets))
		packets, payload = append(packets, packet), payload[n:]
	}
	return packets, nil
}

// finish sets the lengths and checksums of the headers of segment i.
func finish(packet []byte, udp, i int) {
	datagram, ip := packet[udp:], packet[ipOffset(packet):udp]
	binary.BigEndian.PutUint16(datagram[4:], uint16(len(datagram)))
	if ip[0]>>4 == 6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40+len(datagram)))
	} else {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)+len(datagram)))
		binary.BigEndian.PutUint16(ip[4:], binary.BigEndian.Uint16(ip[4:])+uint16(i))
		binary.BigEndian.PutUint16(ip[10:], 0)
		binary.BigEndian.PutUint16(ip[10:], ^sum(ip))
	}
	binary.BigEndian.PutUint16(datagram[6:], 0)
	checksum := ^udpSum(ip, datagram)
	if checksum == 0 { // 0 would mean no checksum
		checksum = 0xffff
	}
	binary.BigEndian.PutUint16(datagram[6:], checksum)
}

// ipOffset returns the offset of the IP header, after at most one VLAN tag.
func ipOffset(frame []byte) int {
	if binary.BigEndian.Uint16(frame[12:]) == unix.ETH_P_8021Q {
		return 14 + 4
	}
	return 14
}

// isUDP reports whether a frame has UDP at an offset, directly after its first IP header.
func isUDP(frame []byte, at int) bool {
	const tagged = 14 + 4
	if len(frame) < tagged+20 {
		return false
	}
	start := ipOffset(frame)
	ip := frame[start:]
	switch binary.BigEndian.Uint16(frame[start-2:]) {
	case unix.ETH_P_IP:
		return ip[9] == unix.IPPROTO_UDP && at == start+int(ip[0]&0xf)*4
	case unix.ETH_P_IPV6:
		return ip[6] == unix.IPPROTO_UDP && at == start+40
	}
	return false
}

// ChecksumRight reports whether a RoCEv2 packet has a UDP checksum and whether it is correct. A missing one
// is correct.
func ChecksumRight(packet []byte) (has, right bool) {
	ip := packet[ipOffset(packet):]
	udp := 20
	if ip[0]>>4 == 6 {
		udp = 40
	}
	datagram := ip[udp:]
	datagram = datagram[:min(len(datagram), int(binary.BigEndian.Uint16(datagram[4:])))] // Ethernet pads
	if datagram[6]|datagram[7] == 0 {
		return false, true
	}
	return true, udpSum(ip[:udp], datagram) == 0xffff
}

// udpSum returns the sum of a datagram and its pseudo header (RFC 768, RFC 8200).
func udpSum(ip, datagram []byte) uint16 {
	addresses := ip[12:20]
	if ip[0]>>4 == 6 {
		addresses = ip[8:40]
	}
	return sum(addresses, []byte{0, unix.IPPROTO_UDP}, datagram[4:6], datagram)
}

// sum returns the ones' complement sum of RFC 1071 over parts of even length, except the last.
func sum(parts ...[]byte) uint16 {
	total := 0
	for _, part := range parts {
		for i, b := range part {
			total += int(b) << (8 * (1 - i%2))
		}
	}
	for total > 0xffff {
		total = total>>16 + total&0xffff
	}
	return uint16(total)
}
