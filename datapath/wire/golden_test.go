// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// field is a field of a frame on the wire, in hexadecimal.
type field struct{ name, bytes string }

// goldens holds frames written by hand. Their ICRCs were computed with the crc32 function of zlib over the masked
// bytes.
var goldens = []struct {
	name    string
	path    Path
	d       Datagram
	payload string
	frame   []field
}{
	{
		name: "IPv4, SEND, pad 0",
		path: Path{
			SourceMAC: MAC{0x52, 0x54, 0, 0x90, 0x6c, 0xa2}, DestMAC: MAC{0x52, 0x54, 0, 0xc9, 0x31, 0x3f},
			Source: gid("10.99.0.3"), Dest: gid("10.99.0.2"), TrafficClass: 0x6A, HopLimit: 7, FlowLabel: 0x12345,
		},
		d:       Datagram{DestQP: 0x123456, SourceQP: 0x789ABC, QKey: 0x11111111, PSN: 0xDEF012, PKey: 0xFFFF, ID: 0xBEEF},
		payload: "pong",
		frame: []field{
			{"destination MAC", "525400c9313f"},
			{"source MAC", "525400906ca2"},
			{"type IPv4", "0800"},
			{"version 4, header 5 words", "45"},
			{"TOS", "6a"},
			{"total length 56", "0038"},
			{"identification", "beef"},
			{"don't fragment", "4000"},
			{"TTL", "07"},
			{"protocol UDP", "11"},
			{"header checksum", "9f91"},
			{"source", "0a630003"},
			{"destination", "0a630002"},
			{"source port 0x2345^4 | 0xC000", "e341"},
			{"destination port 4791", "12b7"},
			{"UDP length 36", "0024"},
			{"UDP checksum: none", "0000"},
			{"UD SEND ONLY", "64"},
			{"SE 0, MigReq 1, pad 0, TVer 0", "40"},
			{"P_Key", "ffff"},
			{"FECN, BECN, reserved", "00"},
			{"destination QP", "123456"},
			{"AckReq 0, reserved", "00"},
			{"PSN", "def012"},
			{"Q_Key", "11111111"},
			{"reserved", "00"},
			{"source QP", "789abc"},
			{"payload", "706f6e67"},
			{"ICRC", "0e065d27"},
		},
	},
	{
		name: "IPv4 group, VLAN, SEND WITH IMMEDIATE, solicited, pad 3, defaults",
		path: Path{
			SourceMAC: MAC{0x52, 0x54, 0, 0x90, 0x6c, 0xa2}, DestMAC: MulticastMAC(gid("239.129.2.3")), VLAN: 0x123,
			Source: gid("10.99.0.3"), Dest: gid("239.129.2.3"),
		},
		d: Datagram{
			DestQP: QPNMulticast, SourceQP: 0x11, QKey: 0x01234567, PSN: 1, PKey: 0x7FFF, ID: 1,
			Solicited: true, HasImm: true, Imm: 0xDEADBEEF,
		},
		payload: "x",
		frame: []field{
			{"destination MAC: the low 23 bits of the group", "01005e010203"},
			{"source MAC", "525400906ca2"},
			{"type 802.1Q", "8100"},
			{"priority 0, VLAN 0x123", "0123"},
			{"type IPv4", "0800"},
			{"version 4, header 5 words", "45"},
			{"TOS", "00"},
			{"total length 60", "003c"},
			{"identification", "0001"},
			{"don't fragment", "4000"},
			{"TTL: the default, 64", "40"},
			{"protocol UDP", "11"},
			{"header checksum", "3ec6"},
			{"source", "0a630003"},
			{"destination", "ef810203"},
			{"source port, see TestFlowLabel", "fedf"},
			{"destination port 4791", "12b7"},
			{"UDP length 40", "0028"},
			{"UDP checksum: none", "0000"},
			{"UD SEND ONLY WITH IMMEDIATE", "65"},
			{"SE 1, MigReq 1, pad 3, TVer 0", "f0"},
			{"P_Key, limited member", "7fff"},
			{"FECN, BECN, reserved", "00"},
			{"destination QP: multicast", "ffffff"},
			{"AckReq 0, reserved", "00"},
			{"PSN", "000001"},
			{"Q_Key", "01234567"},
			{"reserved", "00"},
			{"source QP", "000011"},
			{"immediate data", "deadbeef"},
			{"payload", "78"},
			{"pad", "000000"},
			{"ICRC", "243964d9"},
		},
	},
	{
		name: "IPv6, SEND, pad 2",
		path: Path{
			SourceMAC: MAC{0x52, 0x54, 0, 0x90, 0x6c, 0xa2}, DestMAC: MAC{0x52, 0x54, 0, 0xc9, 0x31, 0x3f},
			Source: gid("fd99::3"), Dest: gid("fd99::2"), TrafficClass: 0x6A, HopLimit: 255, FlowLabel: 0xABCDE,
		},
		d:       Datagram{DestQP: 0x123456, SourceQP: 0x789ABC, QKey: 0x11111111, PSN: 0xFFFFFF, PKey: 0xFFFF, ID: 0xBEEF},
		payload: "hi",
		frame: []field{
			{"destination MAC", "525400c9313f"},
			{"source MAC", "525400906ca2"},
			{"type IPv6", "86dd"},
			{"version 6, traffic class 0x6A, flow label 0xABCDE", "66aabcde"},
			{"payload length 36", "0024"},
			{"next header UDP", "11"},
			{"hop limit", "ff"},
			{"source", "fd990000000000000000000000000003"},
			{"destination", "fd990000000000000000000000000002"},
			{"source port 0x3CDE^0x2A | 0xC000", "fcf4"},
			{"destination port 4791", "12b7"},
			{"UDP length 36", "0024"},
			{"UDP checksum: none", "0000"},
			{"UD SEND ONLY", "64"},
			{"SE 0, MigReq 1, pad 2, TVer 0", "60"},
			{"P_Key", "ffff"},
			{"FECN, BECN, reserved", "00"},
			{"destination QP", "123456"},
			{"AckReq 0, reserved", "00"},
			{"PSN", "ffffff"},
			{"Q_Key", "11111111"},
			{"reserved", "00"},
			{"source QP", "789abc"},
			{"payload", "6869"},
			{"pad", "0000"},
			{"ICRC", "9c5f5ec5"},
		},
	},
	{
		name: "IPv6 group, VLAN, SEND WITH IMMEDIATE, pad 1, defaults",
		path: Path{
			SourceMAC: MAC{0x52, 0x54, 0, 0x90, 0x6c, 0xa2}, DestMAC: MulticastMAC(gid("ff0e::1:89ab:cdef")), VLAN: 0xFFE,
			Source: gid("fe80::1"), Dest: gid("ff0e::1:89ab:cdef"),
		},
		d:       Datagram{DestQP: QPNMulticast, SourceQP: 0x11, QKey: 0x01234567, PKey: 0xFFFF, HasImm: true, Imm: 1},
		payload: "abc",
		frame: []field{
			{"destination MAC: the low 32 bits of the group", "333389abcdef"},
			{"source MAC", "525400906ca2"},
			{"type 802.1Q", "8100"},
			{"priority 0, VLAN 0xFFE", "0ffe"},
			{"type IPv6", "86dd"},
			{"version 6, traffic class 0, flow label 0", "60000000"},
			{"payload length 40", "0028"},
			{"next header UDP", "11"},
			{"hop limit: the default, 64", "40"},
			{"source", "fe800000000000000000000000000001"},
			{"destination", "ff0e0000000000000000000189abcdef"},
			{"source port, see TestFlowLabel", "fedf"},
			{"destination port 4791", "12b7"},
			{"UDP length 40", "0028"},
			{"UDP checksum: none", "0000"},
			{"UD SEND ONLY WITH IMMEDIATE", "65"},
			{"SE 0, MigReq 1, pad 1, TVer 0", "50"},
			{"P_Key", "ffff"},
			{"FECN, BECN, reserved", "00"},
			{"destination QP: multicast", "ffffff"},
			{"AckReq 0, reserved", "00"},
			{"PSN", "000000"},
			{"Q_Key", "01234567"},
			{"reserved", "00"},
			{"source QP", "000011"},
			{"immediate data", "00000001"},
			{"payload", "616263"},
			{"pad", "00"},
			{"ICRC", "b57a59a9"},
		},
	},
	{
		name: "IPv4, SEND, no payload",
		path: Path{
			SourceMAC: MAC{0x52, 0x54, 0, 0x90, 0x6c, 0xa2}, DestMAC: MAC{0x52, 0x54, 0, 0xc9, 0x31, 0x3f},
			Source: gid("10.99.0.3"), Dest: gid("10.99.0.2"), FlowLabel: 1,
		},
		d: Datagram{DestQP: 2, SourceQP: 3, QKey: 4, PSN: 5, PKey: 0xFFFF},
		frame: []field{
			{"destination MAC", "525400c9313f"},
			{"source MAC", "525400906ca2"},
			{"type IPv4", "0800"},
			{"version 4, header 5 words", "45"},
			{"TOS", "00"},
			{"total length 52", "0034"},
			{"identification", "0000"},
			{"don't fragment", "4000"},
			{"TTL: the default, 64", "40"},
			{"protocol UDP", "11"},
			{"header checksum", "25ef"},
			{"source", "0a630003"},
			{"destination", "0a630002"},
			{"source port", "c001"},
			{"destination port 4791", "12b7"},
			{"UDP length 32", "0020"},
			{"UDP checksum: none", "0000"},
			{"UD SEND ONLY", "64"},
			{"SE 0, MigReq 1, pad 0, TVer 0", "40"},
			{"P_Key", "ffff"},
			{"FECN, BECN, reserved", "00"},
			{"destination QP", "000002"},
			{"AckReq 0, reserved", "00"},
			{"PSN", "000005"},
			{"Q_Key", "00000004"},
			{"reserved", "00"},
			{"source QP", "000003"},
			{"ICRC", "0def931c"},
		},
	},
}

func joined(t *testing.T, fields []field) []byte {
	t.Helper()
	var all strings.Builder
	for _, f := range fields {
		all.WriteString(f.bytes)
	}
	frame, err := hex.DecodeString(all.String())
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func TestGoldenBuilt(t *testing.T) {
	for _, golden := range goldens {
		t.Run(golden.name, func(t *testing.T) {
			frame := build(t, golden.path, golden.d, []byte(golden.payload))
			rest := hex.EncodeToString(frame)
			for _, f := range golden.frame {
				n := min(len(f.bytes), len(rest))
				if rest[:n] != f.bytes {
					t.Errorf("%s: %s, want %s", f.name, rest[:n], f.bytes)
				}
				rest = rest[n:]
			}
			if rest != "" {
				t.Errorf("more than expected: %s", rest)
			}
		})
	}
}

func TestGoldenParsed(t *testing.T) {
	for _, golden := range goldens {
		t.Run(golden.name, func(t *testing.T) {
			p := mustParse(t, joined(t, golden.frame))
			if !p.CheckICRC() {
				t.Errorf("ICRC wrong")
			}
			checkParsed(t, p, golden.path, golden.d, []byte(golden.payload))
		})
	}
}

// checkParsed compares a packet with the values that it was built from.
func checkParsed(t *testing.T, p *Packet, path Path, d Datagram, payload []byte) {
	t.Helper()
	bth, deth := p.BTH(), p.DETH()
	if p.Has(HeaderImm) != d.HasImm || d.HasImm && p.Imm() != d.Imm {
		t.Errorf("immediate data %v, want %v %#x", p.Has(HeaderImm), d.HasImm, d.Imm)
	}
	got := Datagram{
		DestQP: bth.DestQP(), SourceQP: deth.SrcQP(), QKey: deth.QKey(), PSN: bth.PSN(), PKey: bth.PKey(), Solicited: bth.Solicited(),
		ID: d.ID, HasImm: d.HasImm, Imm: d.Imm,
	}
	if got != d {
		t.Errorf("datagram %+v, want %+v", got, d)
	}
	if !bytes.Equal(p.Payload(), payload) || bth.PadCount() != -len(payload)&3 || cap(p.Payload()) != len(payload) {
		t.Errorf("payload %q of capacity %d, pad %d, want %q", p.Payload(), cap(p.Payload()), bth.PadCount(), payload)
	}
	if !bth.MigReq() || bth.AckReq() || bth.Version() != 0 || !p.Has(HeaderDETH) || p.Has(HeaderDETH|HeaderRETH) {
		t.Errorf("MigReq %v, AckReq %v, version %d", bth.MigReq(), bth.AckReq(), bth.Version())
	}
	checkPath(t, p, path)
}

func checkPath(t *testing.T, p *Packet, path Path) {
	t.Helper()
	var grh [GRHLen]byte
	p.PutGRH(&grh)
	view := GRH(grh[:])
	id, tagged := p.VLAN()
	got := Path{
		SourceMAC: p.SourceMAC(), DestMAC: MAC(p.frame), VLAN: id, Source: p.Source(), Dest: p.Destination(),
		TrafficClass: view.TrafficClass(), HopLimit: view.HopLimit(), FlowLabel: view.FlowLabel(),
	}
	if path.HopLimit == 0 {
		path.HopLimit = DefaultHopLimit
	}
	if path.Dest.IsIPv4() {
		path.FlowLabel = 0
	}
	if got != path || tagged != (path.VLAN != 0) || p.IsIPv6() == path.Dest.IsIPv4() {
		t.Errorf("path %+v, want %+v; tagged %v, IPv6 %v", got, path, tagged, p.IsIPv6())
	}
	pair := append(path.Source[:], path.Dest[:]...)
	if !p.IsIPv6() {
		pair = append(path.Source[12:], path.Dest[12:]...)
	}
	if !bytes.Equal(p.Addresses(), pair) {
		t.Errorf("addresses % x, want % x", p.Addresses(), pair)
	}
	if view.SGID() != path.Source || view.DGID() != path.Dest {
		t.Errorf("GRH from %v to %v", view.SGID(), view.DGID())
	}
}
