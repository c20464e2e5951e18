// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"
)

// transport returns a Transport with distinct fields.
func transport(o Opcode) Transport {
	return Transport{
		Opcode: o, DestQP: 0x123456, SourceQP: 0x789ABC, PSN: 0xDEF012, PKey: PKeyDefault, ID: 0xBEEF, Solicited: true, AckReq: true, SRQN: 0x313233,
		Addr: 0x0102030405060708, RKey: 0x11121314, Length: 0x21222324, SwapAdd: 0x3132333435363738, Compare: 0x4142434445464748,
		Syndrome: NAKRemoteAccess, MSN: 0x515253, Original: 0x6162636465666768, Imm: 0x71727374,
	}
}

// parsedTransport returns the values that a packet was built from; zero for headers that its opcode does not have.
func parsedTransport(p *Packet) Transport {
	bth := p.BTH()
	h := Transport{Opcode: bth.Opcode(), DestQP: bth.DestQP(), PSN: bth.PSN(), PKey: bth.PKey(), Solicited: bth.Solicited(), AckReq: bth.AckReq()}
	if !p.IsIPv6() {
		h.ID = binary.BigEndian.Uint16(p.frame[p.ip+ipv4Identification:])
	}
	if p.Has(HeaderXRCETH) {
		h.SRQN = p.SRQN()
	}
	if p.Has(HeaderRETH) {
		h.Addr, h.RKey, h.Length = p.RETH().Addr(), p.RETH().RKey(), p.RETH().Length()
	}
	if p.Has(HeaderAtomicETH) {
		a := p.AtomicETH()
		h.Addr, h.RKey, h.SwapAdd, h.Compare = a.Addr(), a.RKey(), a.SwapAdd(), a.Compare()
	}
	if p.Has(HeaderAETH) {
		h.Syndrome, h.MSN = p.AETH().Syndrome(), p.AETH().MSN()
	}
	if p.Has(HeaderAtomicAckETH) {
		h.Original = p.Original()
	}
	if p.Has(HeaderImm) {
		h.Imm = p.Imm()
	}
	if p.Has(HeaderIETH) {
		h.RKey = p.InvalidateRKey()
	}
	return h
}

// cleared keeps only the fields whose headers the opcode has.
func cleared(h Transport) Transport {
	mask := opcodes[h.Opcode].Mask
	h.SourceQP = 0
	if mask&HeaderXRCETH == 0 {
		h.SRQN = 0
	}
	if mask&(HeaderRETH|HeaderAtomicETH) == 0 {
		h.Addr = 0
	}
	if mask&(HeaderRETH|HeaderAtomicETH|HeaderIETH) == 0 {
		h.RKey = 0
	}
	if mask&HeaderRETH == 0 {
		h.Length = 0
	}
	if mask&HeaderAtomicETH == 0 {
		h.SwapAdd, h.Compare = 0, 0
	}
	if mask&HeaderAETH == 0 {
		h.Syndrome, h.MSN = 0, 0
	}
	if mask&HeaderAtomicAckETH == 0 {
		h.Original = 0
	}
	if mask&HeaderImm == 0 {
		h.Imm = 0
	}
	return h
}

// connectedOpcodes returns all opcodes of RC, UC and XRC.
func connectedOpcodes() (all []Opcode) {
	for _, s := range []Service{ServiceRC, ServiceUC, ServiceXRC} {
		for operation := range Opcode(0x20) {
			if _, ok := s.Of(operation).Headers(); ok {
				all = append(all, s.Of(operation))
			}
		}
	}
	return all
}

// Each opcode is built and parsed, over both IP versions, with each pad.
func TestTransportBothWays(t *testing.T) {
	opcodes := connectedOpcodes()
	if len(opcodes) != 23+12+23 {
		t.Fatalf("%d opcodes of RC, UC and XRC", len(opcodes))
	}
	for _, o := range opcodes {
		row, _ := o.Headers()
		for _, path := range []Path{pathIPv4, pathIPv6, tagged(pathIPv4)} {
			for length := range 5 {
				if length > 0 && row.Mask&HeaderNoPayload != 0 {
					break
				}
				p := mustParse(t, buildTransport(t, path, transport(o), filler(length)))
				want := cleared(transport(o))
				if p.IsIPv6() {
					want.ID = 0
				}
				if got := parsedTransport(p); got != want || !p.CheckICRC() || !p.BTH().MigReq() || !bytes.Equal(p.Payload(), filler(length)) {
					t.Errorf("%v: %+v, built of %+v", o, got, want)
				}
			}
		}
	}
}

// TestPeerTransportRebuilt builds every packet of the peer's connections again, from its parsed fields.
func TestPeerTransportRebuilt(t *testing.T) {
	rebuilt := 0
	for _, frame := range peerPackets(t) {
		p := mustParse(t, frame)
		if p.BTH().Opcode().Service() > ServiceUC {
			continue
		}
		rebuilt++
		ours := buildTransport(t, parsedPath(p), parsedTransport(p), p.Payload())
		likePeer(t, ours, p)
		if !bytes.Equal(ours, frame) {
			t.Fatalf("got\n% x, want\n% x", ours, frame)
		}
	}
	if rebuilt != 96 {
		t.Errorf("%d packets rebuilt", rebuilt)
	}
}

// FuzzSealTransport: a sealed packet parses into its fields, and its ICRC is correct.
func FuzzSealTransport(f *testing.F) {
	for _, frame := range peerPackets(f) {
		if p := mustParse(f, frame); p.BTH().Opcode().Service() <= ServiceUC {
			h := parsedTransport(p)
			f.Add(p.IsIPv6(), uint8(h.Opcode), uint32(h.DestQP), uint32(h.PSN), h.Addr, h.RKey, h.Length, h.SwapAdd, h.Compare, uint8(h.Syndrome), h.MSN, h.Imm, p.Payload(), uint32(h.SRQN))
		}
	}
	for i, o := range connectedOpcodes() {
		if h := cleared(transport(o)); o.Service() == ServiceXRC {
			f.Add(i%2 == 0, uint8(i), uint32(h.DestQP), uint32(h.PSN), h.Addr, h.RKey, h.Length, h.SwapAdd, h.Compare, uint8(h.Syndrome), h.MSN, h.Imm, filler(i), uint32(h.SRQN))
		}
	}
	f.Fuzz(func(t *testing.T, v6 bool, o uint8, dest, psn uint32, addr uint64, key, length uint32, swap, compare uint64, syndrome uint8, msn, imm uint32, payload []byte, srqn uint32) {
		all := connectedOpcodes()
		h := Transport{
			Opcode: all[int(o)%len(all)], DestQP: QPN(dest) & QPNMax, PSN: PSN(psn) & PSNMask, PKey: PKeyDefault, Solicited: o&0x80 != 0, AckReq: o&0x40 != 0, Addr: addr, RKey: key,
			Length: length, SwapAdd: swap, Compare: compare, Syndrome: Syndrome(syndrome), MSN: msn & uint32(PSNMask), Original: swap, Imm: imm, SRQN: SRQN(srqn) & SRQNMax,
		}
		payload = payload[:min(len(payload), MTU4096.Bytes())]
		if opcodes[h.Opcode].Mask&HeaderNoPayload != 0 {
			payload = nil
		}
		path := pathIPv4
		if v6 {
			path = pathIPv6
		}
		p := mustParse(t, buildTransport(t, path, h, payload))
		if got := parsedTransport(p); got != cleared(h) || !p.CheckICRC() || !bytes.Equal(p.Payload(), payload) {
			t.Errorf("%+v, built of %+v", got, h)
		}
	})
}

func TestSyndromes(t *testing.T) {
	for code, want := range map[Syndrome]time.Duration{0: 655360, 1: 10, 12: 640, 14: 1280, 31: 491520} {
		if got := (SyndromeRNR | code).RNRTime(); got != want*time.Microsecond {
			t.Errorf("RNR code %d: %v", code, got)
		}
	}
	for receives, want := range map[uint32]Syndrome{0: 0, 1: 1, 4: 4, 5: 4, 6: 5, 7: 5, 191: 14, 192: 15, 32767: 29, 32768: 30, 1 << 31: 30} {
		if got := AckCredits(receives); got != want {
			t.Errorf("%d receives: got code %d, want %d", receives, got, want)
		}
	}
	for code, want := range map[uint8]time.Duration{0: 0, 1: 8192, 14: 67108864, 31: 8796093022208, 32: 0} {
		if got := AckTimeout(code); got != want {
			t.Errorf("timeout %d: %v", code, got)
		}
	}
	if NAKRemoteAccess.Kind() != SyndromeNAK || AckUncounted.Kind() != SyndromeACK || (SyndromeRNR|5).Kind() != SyndromeRNR {
		t.Error("kinds")
	}
}

// The XRCETH follows the BTH of a request: 8 reserved bits, and the number. The rest is as in RC.
func TestXRCETH(t *testing.T) {
	for _, o := range connectedOpcodes() {
		if o.Service() != ServiceXRC {
			continue
		}
		h, like := transport(o), transport(ServiceRC.Of(o.Operation()))
		h.SRQN = 0xFF313233
		p, rc := mustParse(t, buildTransport(t, pathIPv6, h, payloadOf(o))), mustParse(t, buildTransport(t, pathIPv6, like, payloadOf(o)))
		body, want := p.frame[p.bth+BTHLen:], rc.frame[rc.bth+BTHLen:]
		if p.Has(HeaderXRCETH) == o.Means().Is(MeansAnswer) {
			t.Errorf("%v: XRCETH %v", o, p.Has(HeaderXRCETH))
		}
		if p.Has(HeaderXRCETH) {
			if number := []byte{0x00, 0x31, 0x32, 0x33}; !bytes.Equal(body[:4], number) || p.SRQN() != 0x313233 {
				t.Errorf("%v: XRCETH % x, number %v", o, body[:4], p.SRQN())
			}
			body = body[4:]
		}
		if !bytes.Equal(body[:len(body)-ICRCLen], want[:len(want)-ICRCLen]) {
			t.Errorf("%v: got\n% x, want as in RC\n% x", o, body, want)
		}
	}
}
