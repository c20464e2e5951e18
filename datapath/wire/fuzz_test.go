// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"
)

// FuzzParse: the accessors of a packet that Parse accepts do not fail and stay within the packet, and CheckICRC does
// not change it.
func FuzzParse(f *testing.F) {
	for _, frame := range peerPackets(f) {
		f.Add(frame)
	}
	for _, shape := range shapes {
		f.Add(build(f, shape.path, datagram(true), filler(5)))
	}
	for opcode := range specified {
		f.Add(frameOf(f, pathIPv6, opcode, nil))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		before := bytes.Clone(frame)
		frame = frame[:len(frame):len(frame)]
		var p Packet
		guess := GuessDestQP(frame)
		if fault := Parse(frame, &p); fault != FaultNone {
			if fault > FaultPad {
				t.Errorf("fault %d has no name", fault)
			}
			return
		}
		if _, tagged := p.VLAN(); !tagged && guess != p.BTH().DestQP() {
			t.Errorf("guessed QP %d, want %d", guess, p.BTH().DestQP())
		}
		p.CheckICRC()
		useAccessors(t, &p)
		if !bytes.Equal(frame, before) {
			t.Errorf("changed:\n% x\n% x", before, frame)
		}
		if frame = reseal(t, frame[:len(p.frame)]); !mustParse(t, frame).CheckICRC() {
			t.Errorf("the written ICRC is wrong")
		}
	})
}

// useAccessors calls all accessors of a parsed packet.
func useAccessors(t *testing.T, p *Packet) {
	t.Helper()
	bth := p.BTH()
	row, known := bth.Opcode().Headers()
	if !known || bth.Version() != 0 || !p.Has(row.Mask) {
		t.Errorf("opcode %v, version %d", bth.Opcode(), bth.Version())
	}
	if p.Has(HeaderDETH) {
		_, _ = p.DETH().QKey(), p.DETH().SrcQP()
	}
	if p.Has(HeaderImm) {
		_ = p.Imm()
	}
	if s := bth.Opcode().Service(); s <= ServiceUC || s == ServiceXRC {
		parsedTransport(p)
	}
	if whole := row.Payload + len(p.Payload()) + bth.PadCount() + ICRCLen; whole != len(p.frame)-p.bth || cap(p.Payload()) != len(p.Payload()) {
		t.Errorf("%d bytes from the BTH on, %d accounted for", len(p.frame)-p.bth, whole)
	}
	_, _ = bth.DestQP(), bth.PSN()
	_, _, _ = p.SourceMAC(), p.Addresses(), p.ICRC()
	p.VLAN()
	var grh [GRHLen]byte
	p.PutGRH(&grh)
	view := GRH(grh[:])
	if want := map[bool]int{false: 4, true: 6}[p.IsIPv6()]; view.IPVersion() != want && !p.IsIPv6() {
		t.Errorf("GRH of IPv%d, packet of IPv%d", view.IPVersion(), want)
	} else if view.IPVersion() == want && (view.SGID() != p.Source() || view.DGID() != p.Destination()) {
		t.Errorf("GRH from %v to %v, packet from %v to %v", view.SGID(), view.DGID(), p.Source(), p.Destination())
	}
}

// FuzzSeal: a sealed packet parses into its fields, and its ICRC is correct.
func FuzzSeal(f *testing.F) {
	add := func(path Path, d Datagram, payload []byte) {
		f.Add(!path.Dest.IsIPv4(), path.VLAN, path.Source[:], path.Dest[:], path.TrafficClass, path.HopLimit, path.FlowLabel,
			uint32(d.DestQP), uint32(d.SourceQP), uint32(d.QKey), uint32(d.PSN), uint16(d.PKey), d.ID, d.Solicited, d.HasImm, d.Imm, payload)
	}
	for _, frame := range peerPackets(f) {
		if p := mustParse(f, frame); p.BTH().Opcode().Service() == ServiceUD {
			path, d := parsedFields(p)
			add(path, d, p.Payload())
		}
	}
	for _, golden := range goldens {
		add(golden.path, golden.d, []byte(golden.payload))
	}
	f.Fuzz(func(t *testing.T, v6 bool, vlan uint16, source, dest []byte, class, hops uint8, label uint32,
		destQP, sourceQP, qkey, psn uint32, pkey, id uint16, solicited, hasImm bool, imm uint32, payload []byte) {
		path := Path{
			SourceMAC: MAC{2, 0, 0, 0, 0, 1}, DestMAC: MAC{2, 0, 0, 0, 0, 2}, VLAN: vlan & vlanIDMask,
			Source: fuzzGID(v6, source), Dest: fuzzGID(v6, dest), TrafficClass: class, HopLimit: hops, FlowLabel: label & flowLabelMask,
		}
		d := Datagram{
			DestQP: QPN(destQP) & QPNMax, SourceQP: QPN(sourceQP) & QPNMax, QKey: QKey(qkey), PSN: PSN(psn) & PSNMask, PKey: PKey(pkey),
			ID: id, Solicited: solicited, HasImm: hasImm, Imm: imm,
		}
		payload = payload[:min(len(payload), MTU4096.Bytes())]
		p := mustParse(t, build(t, path, d, payload))
		if !p.CheckICRC() {
			t.Errorf("ICRC wrong in % x", p.frame)
		}
		checkParsed(t, p, path, d, payload)
	})
}

// fuzzGID returns an address of the requested version.
func fuzzGID(v6 bool, address []byte) (g GID) {
	copy(g[:], address)
	if v6 {
		g[0] |= 0x20 // not IPv4-mapped
		return g
	}
	return mapped(g[12:])
}
