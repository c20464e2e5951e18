package capture

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// VnetHeaderLen is the length of an Unfinished in bytes: struct virtio_net_hdr, as a TAP has it.
const VnetHeaderLen = 10

// Unfinished is what the kernel has left to the receiver of a frame (struct virtio_net_hdr): to make the
// checksum of a datagram, and to cut a long frame into the packets that it stands for.
type Unfinished [VnetHeaderLen]byte

// Train reports whether the frame stands for several UDP packets (VIRTIO_NET_HDR_GSO_UDP_L4).
func (u *Unfinished) Train() bool { return u[1] == 5 }

func (u *Unfinished) number(offset int) int { return int(binary.NativeEndian.Uint16(u[offset:])) }

// Packets finishes a frame as a NIC would, and returns new packets: with the headers of the frame before
// each segment, the lengths and checksums of that segment, and an IPv4 identification that counts up. A
// frame that is no train is returned as it is, except for UDP's checksum; a frame without UDP right behind its first IP
// header is too, as in a tunnel. EBADMSG means that the header does not fit the frame.
func (u *Unfinished) Packets(frame []byte) (packets [][]byte, err error) {
	// The length of the headers that the kernel gives is a hint.
	udp, checksum := u.number(6), u.number(8)
	if u[0]&1 == 0 || checksum != 6 && !u.Train() || !isUDP(frame, udp) {
		return [][]byte{bytes.Clone(frame)}, nil
	}
	headers, segment := udp+8, len(frame)
	if u.Train() {
		segment = u.number(4)
	}
	if checksum != 6 || headers > len(frame) || segment == 0 {
		return nil, fmt.Errorf("a frame of %d bytes has the header % x: %w", len(frame), u[:], unix.EBADMSG)
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

// finish sets the lengths and checksums of the headers before segment i.
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
	if checksum == 0 { // that would be none
		checksum = 0xffff
	}
	binary.BigEndian.PutUint16(datagram[6:], checksum)
}

// ipOffset is where the IP header starts, behind at most one VLAN tag.
func ipOffset(frame []byte) int {
	if binary.BigEndian.Uint16(frame[12:]) == unix.ETH_P_8021Q {
		return 14 + 4
	}
	return 14
}

// isUDP reports whether a frame has UDP at an offset, right behind its first IP header.
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

// ChecksumRight looks at the UDP checksum of a RoCEv2 packet: has it one, and the right one? None is right
// too.
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

// udpSum is the sum of a datagram and its pseudo header (RFC 768, RFC 8200).
func udpSum(ip, datagram []byte) uint16 {
	addresses := ip[12:20]
	if ip[0]>>4 == 6 {
		addresses = ip[8:40]
	}
	return sum(addresses, []byte{0, unix.IPPROTO_UDP}, datagram[4:6], datagram)
}

// sum is the ones' complement sum of RFC 1071 over parts of even length, except the last.
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
