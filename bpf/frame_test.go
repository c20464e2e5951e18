// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"net/netip"
)

// The hosts and groups of the tests.
var (
	own4   = netip.MustParseAddr("10.0.0.1")
	own6   = netip.MustParseAddr("fd00::1")
	peer4  = netip.MustParseAddr("10.0.0.2")
	peer6  = netip.MustParseAddr("fd00::2")
	group4 = netip.MustParseAddr("239.1.2.3")
	group6 = netip.MustParseAddr("ff0e::1:2:3")

	// Groups with the same MAC addresses as the ones above.
	twin4 = netip.MustParseAddr("238.1.2.3")
	twin6 = netip.MustParseAddr("ff0e::2:1:2:3")

	// A foreign address with the same last 16 bits as own4.
	alike4 = netip.MustParseAddr("192.168.0.1")

	// The broadcast address of one of the host's subnets.
	broadcast4 = netip.MustParseAddr("10.0.0.255")

	// The MAC of the interface, and that of a VLAN interface on it.
	ownMAC   = [6]byte{0x02, 0xA1, 0xB2, 0xC3, 0xD4, 0xE5}
	upperMAC = [6]byte{0x02, 0xA1, 0xB2, 0xC3, 0xD4, 0xE6}
	otherMAC = [6]byte{0x02, 0xA1, 0xB2, 0xC3, 0xD5, 0xE5}
	groupMAC = [6]byte{0x01, 0x00, 0x5E, 1, 2, 3}
)

const (
	knownQP   = 0x123456
	unknownQP = 0x123457

	sendOnly   = 0x64 // UD
	rcSendOnly = 0x04

	tpidCustomer = 0x8100
	tpidService  = 0x88a8
)

// tag is a VLAN tag. tci may contain a priority in addition to the VLAN number.
type tag struct{ tpid, tci uint16 }

// frame describes a packet with correct lengths. Tests patch errors into the built frame.
type frame struct {
	mac      [6]byte // destination
	tags     []tag
	src, dst netip.Addr
	options  int // bytes, for IPv4
	opcode   byte
	qpn      uint32
	payload  int // bytes; negative values to -4 remove the ICRC
	padding  int // bytes after the packet, as Ethernet adds
}

// toOwn4 and the following functions return valid packets, which tests modify.
func toOwn4() frame {
	return frame{mac: ownMAC, src: peer4, dst: own4, opcode: sendOnly, qpn: knownQP, payload: 16}
}
func toOwn6() frame {
	return frame{mac: ownMAC, src: peer6, dst: own6, opcode: sendOnly, qpn: knownQP, payload: 16}
}

func toGroup4() frame {
	return frame{mac: groupMAC, src: peer4, dst: group4, opcode: sendOnly, qpn: multicastQPN, payload: 16}
}

func toGroup6() frame {
	return frame{mac: groupMAC, src: peer6, dst: group6, opcode: sendOnly, qpn: multicastQPN, payload: 16}
}

func (f frame) with(change func(*frame)) frame {
	change(&f)
	return f
}

func (f frame) bytes() []byte {
	transport := f.transport()
	b := make([]byte, 12, 128)
	copy(b, f.mac[:])
	for _, tag := range f.tags {
		b = binary.BigEndian.AppendUint16(b, tag.tpid)
		b = binary.BigEndian.AppendUint16(b, tag.tci)
	}
	if f.dst.Is4() {
		b = f.appendIPv4(b, 8+len(transport))
	} else {
		b = f.appendIPv6(b, 8+len(transport))
	}
	b = binary.BigEndian.AppendUint16(b, 0xC000)
	b = binary.BigEndian.AppendUint16(b, 4791)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(transport)))
	b = binary.BigEndian.AppendUint16(b, 0)
	b = append(b, transport...)
	return append(b, make([]byte, f.padding)...)
}

// transport returns the bytes from the BTH to the ICRC, whose value the program does not check.
func (f frame) transport() []byte {
	b := []byte{f.opcode, 0x40, 0xFF, 0xFF}
	b = binary.BigEndian.AppendUint32(b, f.qpn)
	b = binary.BigEndian.AppendUint32(b, 0x00000007) // PSN
	if f.opcode>>5 == 3 {
		b = binary.BigEndian.AppendUint32(b, 0x11111111) // Q_Key
		b = binary.BigEndian.AppendUint32(b, 0x00000012) // source QP
	}
	return append(b, make([]byte, f.payload+4)...)
}

func (f frame) appendIPv4(b []byte, length int) []byte {
	header := 20 + f.options
	b = binary.BigEndian.AppendUint16(b, 0x0800)
	b = append(b, 0x40|byte(header/4), 0)
	b = binary.BigEndian.AppendUint16(b, uint16(header+length))
	b = append(b, 0, 1, 0x40, 0, 64, 17, 0, 0) // id, DF, TTL, UDP, checksum
	b = append(b, f.src.AsSlice()...)
	b = append(b, f.dst.AsSlice()...)
	for range f.options {
		b = append(b, 1) // no operation
	}
	return b
}

func (f frame) appendIPv6(b []byte, length int) []byte {
	b = binary.BigEndian.AppendUint16(b, 0x86DD)
	b = append(b, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(length))
	b = append(b, 17, 64) // UDP, hop limit
	b = append(b, f.src.AsSlice()...)
	return append(b, f.dst.AsSlice()...)
}
