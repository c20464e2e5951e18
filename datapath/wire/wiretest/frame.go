// SPDX-License-Identifier: Apache-2.0

package wiretest

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Offsets in an untagged IPv4 frame with a UD datagram, in bytes.
const (
	IP      = 14
	UDP     = IP + 20
	BTH     = UDP + 8
	DETH    = BTH + 12
	Payload = DETH + 8
)

// FixIPv4 writes the checksum of an IPv4 header without options (RFC 791).
func FixIPv4(header []byte) {
	header[10], header[11] = 0, 0
	sum := uint32(0)
	for i := 0; i < 20; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(header[i:]))
	}
	for sum > 0xFFFF {
		sum = sum>>16 + sum&0xFFFF
	}
	binary.BigEndian.PutUint16(header[10:], ^uint16(sum))
}

// Reseal writes the IPv4 checksum and the ICRC (IBA A17.3.3) of a changed frame, so that the change is its only fault.
// It returns the frame.
func Reseal(frame []byte) []byte {
	FixIPv4(frame[IP:])
	masked := append(bytes.Repeat([]byte{0xFF}, 8), frame[IP:len(frame)-4]...)
	for _, at := range []int{1, 8, 10, 11, 26, 27, 32} { // TOS, TTL, checksums, FECN
		masked[8+at] = 0xFF
	}
	binary.LittleEndian.PutUint32(frame[len(frame)-4:], crc32.ChecksumIEEE(masked))
	return frame
}

// Reseal6 writes the ICRC of a changed IPv6 frame. An IPv6 header has no checksum.
func Reseal6(frame []byte) []byte {
	masked := append(bytes.Repeat([]byte{0xFF}, 8), frame[IP:len(frame)-4]...)
	masked[8] |= 0x0F
	for _, at := range []int{1, 2, 3, 7, 46, 47, 52} { // class, label, hop limit, checksum, FECN
		masked[8+at] = 0xFF
	}
	binary.LittleEndian.PutUint32(frame[len(frame)-4:], crc32.ChecksumIEEE(masked))
	return frame
}

// Shorten truncates a frame to a length in bytes, sets the lengths in its IP and UDP headers, and reseals it.
func Shorten(frame []byte, length int) []byte {
	binary.BigEndian.PutUint16(frame[IP+2:], uint16(length-IP))
	binary.BigEndian.PutUint16(frame[UDP+4:], uint16(length-UDP))
	return Reseal(frame[:length])
}
