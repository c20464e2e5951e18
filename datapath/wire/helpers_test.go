// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"net/netip"
	"testing"
)

func gid(address string) GID { return GIDFromAddr(netip.MustParseAddr(address)) }

// The paths of built frames in these tests: every shape of headers.
var (
	pathIPv4 = Path{
		SourceMAC: MAC{0x02, 0, 0, 0, 0, 0x01}, DestMAC: MAC{0x02, 0, 0, 0, 0, 0x02},
		Source: gid("10.99.0.3"), Dest: gid("10.99.0.2"), TrafficClass: 0x6A,
	}
	pathIPv6 = Path{
		SourceMAC: MAC{0x02, 0, 0, 0, 0, 0x01}, DestMAC: MAC{0x02, 0, 0, 0, 0, 0x02},
		Source: gid("fd99::3"), Dest: gid("fd99::2"), TrafficClass: 0x6A, HopLimit: 7, FlowLabel: 0xABCDE,
	}
	shapes = []struct {
		name string
		path Path
	}{
		{"IPv4", pathIPv4},
		{"IPv4 VLAN", tagged(pathIPv4)},
		{"IPv6", pathIPv6},
		{"IPv6 VLAN", tagged(pathIPv6)},
	}
)

func tagged(path Path) Path {
	path.VLAN = 0x123
	return path
}

// datagram returns a datagram with a different value in each byte of its fields.
func datagram(hasImm bool) Datagram {
	return Datagram{
		DestQP: 0x123456, SourceQP: 0x789ABC, QKey: 0x11223344, PSN: 0xDEF012, PKey: PKeyDefault, ID: 0xBEEF,
		HasImm: hasImm, Imm: 0xCAFEBABE,
	}
}

// filler returns a payload that no dissector recognizes.
func filler(length int) []byte { return bytes.Repeat([]byte{0x7B}, length) }

// build seals a packet in a buffer filled with 0xA5, so that bytes that were not written are visible, and checks that
// no bytes after the packet are written.
func build(t testing.TB, path Path, d Datagram, payload []byte) []byte {
	t.Helper()
	template := NewTemplate(path)
	return sealed(t, payload, template.PayloadOffset(d.HasImm), func(frame []byte) int { return template.Seal(frame, &d, len(payload)) })
}

// buildTransport is build for a packet of a connected queue pair.
func buildTransport(t testing.TB, path Path, h Transport, payload []byte) []byte {
	t.Helper()
	template := NewTemplate(path)
	return sealed(t, payload, template.PayloadOffsetOf(h.Opcode), func(frame []byte) int { return template.SealTransport(frame, &h, len(payload)) })
}

func sealed(t testing.TB, payload []byte, offset int, seal func(frame []byte) int) []byte {
	t.Helper()
	const guard = 32
	buffer := bytes.Repeat([]byte{0xA5}, offset+len(payload)+MaxTrailer+guard)
	copy(buffer[offset:], payload)
	n := seal(buffer)
	for i, b := range buffer[n:] {
		if b != 0xA5 {
			t.Fatalf("byte %d behind the packet was written: %#02x", i, b)
		}
	}
	return buffer[:n:n]
}

// mustParse parses a valid frame.
func mustParse(t testing.TB, frame []byte) *Packet {
	t.Helper()
	p := new(Packet)
	if fault := Parse(frame, p); fault != FaultNone {
		t.Fatalf("fault %v in % x", fault, frame)
	}
	return p
}
