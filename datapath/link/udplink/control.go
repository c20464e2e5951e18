// SPDX-License-Identifier: Apache-2.0

package udplink

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// A control message (cmsg(3)) consists of a header with length, level and type, and of data. Both are aligned to words.

// told holds the ancillary data of a received datagram.
type told struct {
	dest    [16]byte // destination address; an IPv4 address is in the first four bytes
	hasDest bool     // dest was reported
	class   byte     // traffic class (IPv6) or TOS (IPv4)
	hops    byte     // hop limit or TTL
	segment int      // length of each packet of a row, in bytes; 0: a single packet
}

// read reads the control messages of a datagram.
func (t *told) read(control []byte) {
	*t = told{}
	for len(control) >= unix.SizeofCmsghdr {
		length := cmsgLength(control)
		if length < unix.SizeofCmsghdr || length > len(control) {
			return
		}
		levelAndType := control[unix.SizeofCmsghdr-8:]
		t.take(int(binary.NativeEndian.Uint32(levelAndType)), int(binary.NativeEndian.Uint32(levelAndType[4:])), control[unix.CmsgLen(0):length])
		control = control[min(len(control), unix.CmsgSpace(length-unix.CmsgLen(0))):]
	}
}

// take reads one control message. It ignores messages of other types or with an unexpected length.
func (t *told) take(level, kind int, data []byte) {
	switch {
	case level == unix.IPPROTO_IP && kind == unix.IP_PKTINFO && len(data) >= unix.SizeofInet4Pktinfo:
		t.hasDest = true
		copy(t.dest[:], data[8:12])
	case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_PKTINFO && len(data) >= unix.SizeofInet6Pktinfo:
		t.hasDest = true
		copy(t.dest[:], data[:16])
	case level == unix.IPPROTO_IP && kind == unix.IP_TOS && len(data) >= 1:
		t.class = data[0]
	case level == unix.IPPROTO_IPV6 && kind == unix.IPV6_TCLASS && len(data) >= 4:
		t.class = byte(binary.NativeEndian.Uint32(data))
	case level == unix.IPPROTO_IP && kind == unix.IP_TTL && len(data) >= 4,
		level == unix.IPPROTO_IPV6 && kind == unix.IPV6_HOPLIMIT && len(data) >= 4:
		t.hops = byte(binary.NativeEndian.Uint32(data))
	case level == unix.IPPROTO_UDP && kind == unix.UDP_GRO && len(data) >= 4:
		t.segment = int(binary.NativeEndian.Uint32(data))
	}
}

func cmsgLength(header []byte) int {
	if unix.SizeofCmsghdr == 16 {
		return int(binary.NativeEndian.Uint64(header))
	}
	return int(binary.NativeEndian.Uint32(header))
}

// putControl writes the header of a control message with data of length bytes. It returns the space for the data and
// the space after it.
func putControl(control []byte, level, kind, length int) (data, rest []byte) {
	if unix.SizeofCmsghdr == 16 {
		binary.NativeEndian.PutUint64(control, uint64(unix.CmsgLen(length)))
	} else {
		binary.NativeEndian.PutUint32(control, uint32(unix.CmsgLen(length)))
	}
	levelAndType := control[unix.SizeofCmsghdr-8:]
	binary.NativeEndian.PutUint32(levelAndType, uint32(level))
	binary.NativeEndian.PutUint32(levelAndType[4:], uint32(kind))
	space := unix.CmsgSpace(length)
	return control[unix.CmsgLen(0):space], control[space:]
}

func putControlInt(control []byte, level, kind, value int) (rest []byte) {
	data, rest := putControl(control, level, kind, 4)
	binary.NativeEndian.PutUint32(data, uint32(value))
	return rest
}
