// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// rxePort returns the UDP source port of Soft-RoCE: hash_32 of the sending QPN to 14 bits, in rxe_qp_init_req. This
// rule differs from that for a flow label.
func rxePort(sender QPN) uint16 { return uint16(uint32(sender)*0x61C88647>>18) + 0xC000 }

// TestPeerRebuilt builds every datagram of the peer again, from its parsed fields. The bytes are equal after the
// differences of Soft-RoCE are applied: it does not set MigReq (NICs and this package do), sets AckReq on MADs, and
// uses flow label 0.
func TestPeerRebuilt(t *testing.T) {
	rebuilt := 0
	for _, frame := range peerPackets(t) {
		p := mustParse(t, frame)
		if p.BTH().Opcode().Service() != ServiceUD {
			continue
		}
		rebuilt++
		if port := udpSourcePort(p); port != rxePort(p.DETH().SrcQP()) {
			t.Errorf("source port %d from %v, Soft-RoCE's rule gives %d", port, p.DETH().SrcQP(), rxePort(p.DETH().SrcQP()))
		}
		path, d := parsedFields(p)
		ours := build(t, path, d, p.Payload())
		likePeer(t, ours, p)
		if !bytes.Equal(ours, frame) {
			t.Fatalf("got\n% x, want\n% x", ours, frame)
		}
	}
	if rebuilt != 127 {
		t.Errorf("%d datagrams rebuilt", rebuilt)
	}
}

func udpSourcePort(p *Packet) uint16 { return binary.BigEndian.Uint16(p.frame[p.bth-UDPLen:]) }

// parsedPath returns the path that a packet was built for. The flow label is chosen for its source port.
func parsedPath(p *Packet) Path {
	var grh [GRHLen]byte
	p.PutGRH(&grh)
	return Path{
		SourceMAC: p.SourceMAC(), DestMAC: MAC(p.frame), Source: p.Source(), Dest: p.Destination(),
		TrafficClass: GRH(grh[:]).TrafficClass(), HopLimit: GRH(grh[:]).HopLimit(), FlowLabel: uint32(udpSourcePort(p) & 0x3FFF),
	}
}

// parsedFields returns the values that a datagram was built from.
func parsedFields(p *Packet) (Path, Datagram) {
	d := Datagram{
		DestQP: p.BTH().DestQP(), SourceQP: p.DETH().SrcQP(), QKey: p.DETH().QKey(), PSN: p.BTH().PSN(), PKey: p.BTH().PKey(),
		Solicited: p.BTH().Solicited(), HasImm: p.Has(HeaderImm),
	}
	if d.HasImm {
		d.Imm = p.Imm()
	}
	if !p.IsIPv6() {
		d.ID = binary.BigEndian.Uint16(p.frame[p.ip+ipv4Identification:])
	}
	return parsedPath(p), d
}

// likePeer applies the differences of Soft-RoCE to our packet, and computes its ICRC again.
func likePeer(t *testing.T, ours []byte, peer *Packet) {
	t.Helper()
	p := mustParse(t, ours)
	if datagram := p.Has(HeaderDETH); !p.BTH().MigReq() || datagram && p.BTH().AckReq() || !p.CheckICRC() {
		t.Errorf("MigReq %v, AckReq %v, ICRC correct %v in our packet", p.BTH().MigReq(), p.BTH().AckReq(), p.CheckICRC())
	}
	ours[p.bth+bthFlags] &^= bthMigReq
	if peer.BTH().AckReq() {
		ours[p.bth+bthAckReq] |= bthAckRequested
	}
	if p.IsIPv6() {
		ours[p.ip+1] &= 0xF0
		ours[p.ip+2], ours[p.ip+3] = 0, 0 // flow label
	}
	binary.LittleEndian.PutUint32(ours[len(ours)-ICRCLen:], p.computeICRC())
}
