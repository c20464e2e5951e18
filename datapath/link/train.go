// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bytes"
	"encoding/binary"

	"github.com/roced/roced/datapath/wire"
	"golang.org/x/sys/unix"
)

const (
	maxTrain = 64 // maximum number of packets (UDP_MAX_SEGMENTS in Linux 6.2 to 6.8; 128 since 6.9)
	// maxTrainBytes is the maximum length of a train, in bytes: that of an IP packet.
	maxTrainBytes = 65535
	// minTrain is the minimum number of packets with which a train is faster than single frames on the AF_XDP socket.
	minTrain = 8
)

// headers holds the offsets of a frame's headers.
type headers struct {
	ip, udp, payload int
	six              bool
}

// headersOf finds the headers of a frame that the engine has built.
func headersOf(frame []byte) (at headers) {
	at.ip = wire.EthernetLen
	if binary.BigEndian.Uint16(frame[wire.EthernetLen-2:]) == wire.EtherTypeVLAN {
		at.ip += wire.VLANLen
	}
	if at.six = frame[at.ip]>>4 == 6; at.six {
		at.udp = at.ip + wire.IPv6Len
	} else {
		at.udp = at.ip + wire.IPv4Len
	}
	at.payload = at.udp + wire.UDPLen
	return at
}

// follows reports whether next may follow frame in a train: whether the kernel would produce the headers of next when
// it segments the train. They must be equal to those of frame, except for lengths, checksums and an IPv4 identification
// that is incremented.
func (at *headers) follows(frame, next []byte) bool {
	ip, udp := at.ip, at.udp
	if len(next) < at.payload || !bytes.Equal(frame[:ip], next[:ip]) || !bytes.Equal(frame[udp:udp+4], next[udp:udp+4]) {
		return false
	}
	f, n := frame[ip:udp], next[ip:udp]
	if at.six {
		return [4]byte(f) == [4]byte(n) && bytes.Equal(f[6:], n[6:])
	}
	id, nextID := binary.BigEndian.Uint16(f[4:]), binary.BigEndian.Uint16(n[4:])
	return nextID == id+1 && [2]byte(f) == [2]byte(n) && [4]byte(f[6:]) == [4]byte(n[6:]) && [8]byte(f[12:]) == [8]byte(n[12:])
}

// setLengths converts the headers of a frame to those of a train with a payload of length bytes. It sets the UDP
// checksum to that of the pseudo header, as the kernel requires.
func (at *headers) setLengths(header []byte, length int) {
	ip, udp := header[at.ip:at.udp], header[at.udp:]
	length += wire.UDPLen
	addresses := ip[12:20]
	if at.six {
		addresses = ip[8:40]
		binary.BigEndian.PutUint16(ip[4:], uint16(length))
	} else {
		binary.BigEndian.PutUint16(ip[2:], uint16(wire.IPv4Len+length))
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^fold(sum(ip)))
	}
	binary.BigEndian.PutUint16(udp[4:], uint16(length))
	binary.BigEndian.PutUint16(udp[6:], fold(sum(addresses)+unix.IPPROTO_UDP+uint32(length)))
}

// sum adds up 16-bit numbers for an Internet checksum (RFC 1071).
func sum(b []byte) (total uint32) {
	for ; len(b) >= 2; b = b[2:] {
		total += uint32(binary.BigEndian.Uint16(b))
	}
	return total
}

func fold(total uint32) uint16 {
	total = total>>16 + total&0xffff
	return uint16(total>>16 + total)
}
