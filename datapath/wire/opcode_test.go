// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/wire/wiretest"
)

// specified is the specification's table of opcodes (IBA table 38 and A17.9.3; XRC: A14): the headers that follow the
// BTH. A dash means that there is no payload.
var specified = map[Opcode]struct{ name, headers string }{
	0x00: {"RC_SEND_FIRST", ""},
	0x01: {"RC_SEND_MIDDLE", ""},
	0x02: {"RC_SEND_LAST", ""},
	0x03: {"RC_SEND_LAST_WITH_IMMEDIATE", "Imm"},
	0x04: {"RC_SEND_ONLY", ""},
	0x05: {"RC_SEND_ONLY_WITH_IMMEDIATE", "Imm"},
	0x06: {"RC_RDMA_WRITE_FIRST", "RETH"},
	0x07: {"RC_RDMA_WRITE_MIDDLE", ""},
	0x08: {"RC_RDMA_WRITE_LAST", ""},
	0x09: {"RC_RDMA_WRITE_LAST_WITH_IMMEDIATE", "Imm"},
	0x0A: {"RC_RDMA_WRITE_ONLY", "RETH"},
	0x0B: {"RC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "RETH Imm"},
	0x0C: {"RC_RDMA_READ_REQUEST", "RETH -"},
	0x0D: {"RC_RDMA_READ_RESPONSE_FIRST", "AETH"},
	0x0E: {"RC_RDMA_READ_RESPONSE_MIDDLE", ""},
	0x0F: {"RC_RDMA_READ_RESPONSE_LAST", "AETH"},
	0x10: {"RC_RDMA_READ_RESPONSE_ONLY", "AETH"},
	0x11: {"RC_ACKNOWLEDGE", "AETH -"},
	0x12: {"RC_ATOMIC_ACKNOWLEDGE", "AETH AtomicAckETH -"},
	0x13: {"RC_COMPARE_SWAP", "AtomicETH -"},
	0x14: {"RC_FETCH_ADD", "AtomicETH -"},
	0x16: {"RC_SEND_LAST_WITH_INVALIDATE", "IETH"},
	0x17: {"RC_SEND_ONLY_WITH_INVALIDATE", "IETH"},

	0x20: {"UC_SEND_FIRST", ""},
	0x21: {"UC_SEND_MIDDLE", ""},
	0x22: {"UC_SEND_LAST", ""},
	0x23: {"UC_SEND_LAST_WITH_IMMEDIATE", "Imm"},
	0x24: {"UC_SEND_ONLY", ""},
	0x25: {"UC_SEND_ONLY_WITH_IMMEDIATE", "Imm"},
	0x26: {"UC_RDMA_WRITE_FIRST", "RETH"},
	0x27: {"UC_RDMA_WRITE_MIDDLE", ""},
	0x28: {"UC_RDMA_WRITE_LAST", ""},
	0x29: {"UC_RDMA_WRITE_LAST_WITH_IMMEDIATE", "Imm"},
	0x2A: {"UC_RDMA_WRITE_ONLY", "RETH"},
	0x2B: {"UC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "RETH Imm"},

	0x40: {"RD_SEND_FIRST", "RDETH DETH"},
	0x41: {"RD_SEND_MIDDLE", "RDETH DETH"},
	0x42: {"RD_SEND_LAST", "RDETH DETH"},
	0x43: {"RD_SEND_LAST_WITH_IMMEDIATE", "RDETH DETH Imm"},
	0x44: {"RD_SEND_ONLY", "RDETH DETH"},
	0x45: {"RD_SEND_ONLY_WITH_IMMEDIATE", "RDETH DETH Imm"},
	0x46: {"RD_RDMA_WRITE_FIRST", "RDETH DETH RETH"},
	0x47: {"RD_RDMA_WRITE_MIDDLE", "RDETH DETH"},
	0x48: {"RD_RDMA_WRITE_LAST", "RDETH DETH"},
	0x49: {"RD_RDMA_WRITE_LAST_WITH_IMMEDIATE", "RDETH DETH Imm"},
	0x4A: {"RD_RDMA_WRITE_ONLY", "RDETH DETH RETH"},
	0x4B: {"RD_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "RDETH DETH RETH Imm"},
	0x4C: {"RD_RDMA_READ_REQUEST", "RDETH DETH RETH -"},
	0x4D: {"RD_RDMA_READ_RESPONSE_FIRST", "RDETH AETH"},
	0x4E: {"RD_RDMA_READ_RESPONSE_MIDDLE", "RDETH"},
	0x4F: {"RD_RDMA_READ_RESPONSE_LAST", "RDETH AETH"},
	0x50: {"RD_RDMA_READ_RESPONSE_ONLY", "RDETH AETH"},
	0x51: {"RD_ACKNOWLEDGE", "RDETH AETH -"},
	0x52: {"RD_ATOMIC_ACKNOWLEDGE", "RDETH AETH AtomicAckETH -"},
	0x53: {"RD_COMPARE_SWAP", "RDETH DETH AtomicETH -"},
	0x54: {"RD_FETCH_ADD", "RDETH DETH AtomicETH -"},
	0x55: {"RD_RESYNC", "RDETH DETH -"},

	0x64: {"UD_SEND_ONLY", "DETH"},
	0x65: {"UD_SEND_ONLY_WITH_IMMEDIATE", "DETH Imm"},

	0x81: {"CNP", "CNP -"},

	0xA0: {"XRC_SEND_FIRST", "XRCETH"},
	0xA1: {"XRC_SEND_MIDDLE", "XRCETH"},
	0xA2: {"XRC_SEND_LAST", "XRCETH"},
	0xA3: {"XRC_SEND_LAST_WITH_IMMEDIATE", "XRCETH Imm"},
	0xA4: {"XRC_SEND_ONLY", "XRCETH"},
	0xA5: {"XRC_SEND_ONLY_WITH_IMMEDIATE", "XRCETH Imm"},
	0xA6: {"XRC_RDMA_WRITE_FIRST", "XRCETH RETH"},
	0xA7: {"XRC_RDMA_WRITE_MIDDLE", "XRCETH"},
	0xA8: {"XRC_RDMA_WRITE_LAST", "XRCETH"},
	0xA9: {"XRC_RDMA_WRITE_LAST_WITH_IMMEDIATE", "XRCETH Imm"},
	0xAA: {"XRC_RDMA_WRITE_ONLY", "XRCETH RETH"},
	0xAB: {"XRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", "XRCETH RETH Imm"},
	0xAC: {"XRC_RDMA_READ_REQUEST", "XRCETH RETH -"},
	0xAD: {"XRC_RDMA_READ_RESPONSE_FIRST", "AETH"},
	0xAE: {"XRC_RDMA_READ_RESPONSE_MIDDLE", ""},
	0xAF: {"XRC_RDMA_READ_RESPONSE_LAST", "AETH"},
	0xB0: {"XRC_RDMA_READ_RESPONSE_ONLY", "AETH"},
	0xB1: {"XRC_ACKNOWLEDGE", "AETH -"},
	0xB2: {"XRC_ATOMIC_ACKNOWLEDGE", "AETH AtomicAckETH -"},
	0xB3: {"XRC_COMPARE_SWAP", "XRCETH AtomicETH -"},
	0xB4: {"XRC_FETCH_ADD", "XRCETH AtomicETH -"},
	0xB6: {"XRC_SEND_LAST_WITH_INVALIDATE", "XRCETH IETH"},
	0xB7: {"XRC_SEND_ONLY_WITH_INVALIDATE", "XRCETH IETH"},
}

// specifiedHeaders are the headers with their lengths in bytes (IBA 9.3; CNP: A17.9.3).
var specifiedHeaders = map[string]struct {
	mask   HeaderMask
	length int
}{
	"RDETH":        {HeaderRDETH, 4},
	"DETH":         {HeaderDETH, 8},
	"XRCETH":       {HeaderXRCETH, 4},
	"RETH":         {HeaderRETH, 16},
	"AtomicETH":    {HeaderAtomicETH, 28},
	"AETH":         {HeaderAETH, 4},
	"AtomicAckETH": {HeaderAtomicAckETH, 8},
	"Imm":          {HeaderImm, 4},
	"IETH":         {HeaderIETH, 4},
	"CNP":          {HeaderCNP, 16},
	"-":            {HeaderNoPayload, 0},
}

func TestOpcodeTable(t *testing.T) {
	for code := range 256 {
		opcode := Opcode(code)
		want, exists := specified[opcode]
		row, ok := opcode.Headers()
		if ok != exists {
			t.Errorf("%#02x: in the table %v, specified %v", code, ok, exists)
			continue
		}
		if !exists {
			if name := fmt.Sprintf("opcode(0x%02x)", code); opcode.String() != name {
				t.Errorf("%#02x has the name %v, want %s", code, opcode, name)
			}
			continue
		}
		payload, mask := 12, HeaderMask(0)
		for _, header := range strings.Fields(want.headers) {
			payload += specifiedHeaders[header].length
			mask |= specifiedHeaders[header].mask
		}
		if row.Name != want.name || row.Mask != mask || row.Payload != payload || opcode.String() != want.name {
			t.Errorf("%#02x: %+v, want %s with %s, payload at %d", code, row, want.name, want.headers, payload)
		}
	}
}

func TestServices(t *testing.T) {
	services := map[string]Service{
		"RC": ServiceRC, "UC": ServiceUC, "RD": ServiceRD, "UD": ServiceUD, "CNP": ServiceCNP, "XRC": ServiceXRC,
	}
	for opcode, row := range specified {
		name, _, _ := strings.Cut(row.name, "_")
		if want, known := services[name]; !known || opcode.Service() != want {
			t.Errorf("%v is of service %d", opcode, opcode.Service())
		}
	}
}

// frameOf returns a packet of any opcode, with zeros in its headers and the given payload: a UD packet with another
// opcode.
func frameOf(t testing.TB, path Path, opcode Opcode, payload []byte) []byte {
	t.Helper()
	row := opcodes[opcode]
	headers := make([]byte, row.Payload-BTHLen)
	body := append(headers, payload...)
	frame := build(t, path, datagram(false), append(body, make([]byte, DETHLen)...)[DETHLen:])
	p := mustParse(t, frame)
	copy(frame[p.bth+BTHLen:], body)
	frame = shorten(t, frame, DETHLen)
	frame[p.bth] = byte(opcode)
	return reseal(t, frame)
}

// shorten removes bytes from the end of a packet, and corrects its lengths.
func shorten(t testing.TB, frame []byte, by int) []byte {
	t.Helper()
	p := mustParse(t, frame)
	frame = frame[:len(frame)-by]
	put16(p.bth-4, uint16(len(frame)-p.bth+8))(frame)
	if p.v6 {
		return put16(p.ip+4, uint16(len(frame)-p.ip-40))(frame)
	}
	put16(p.ip+2, uint16(len(frame)-p.ip))(frame)
	wiretest.FixIPv4(frame[p.ip:])
	return frame
}

// reseal corrects the ICRC of a changed packet.
func reseal(t testing.TB, frame []byte) []byte {
	t.Helper()
	p := mustParse(t, frame)
	sum := p.computeICRC()
	for i := range ICRCLen {
		frame[len(frame)-ICRCLen+i] = byte(sum >> (8 * i))
	}
	return frame
}

// TestEveryOpcodeParses builds the shortest packet of every opcode, over both IP versions. A packet that is one word
// shorter is not accepted. A packet with a payload is accepted if the opcode permits one.
func TestEveryOpcodeParses(t *testing.T) {
	for opcode := range specified {
		row := opcodes[opcode]
		for _, path := range []Path{pathIPv4, pathIPv6} {
			p := mustParse(t, frameOf(t, path, opcode, nil))
			if len(p.Payload()) != 0 || !p.Has(row.Mask) || p.BTH().Opcode() != opcode || !p.CheckICRC() {
				t.Errorf("%v: payload %d, headers %#x", opcode, len(p.Payload()), p.headers)
			}
			var short Packet
			if fault := Parse(shorten(t, frameOf(t, path, opcode, nil), 4), &short); fault != FaultLength {
				t.Errorf("%v, a word shorter: %v", opcode, fault)
			}
			if row.Mask&HeaderNoPayload == 0 {
				p := mustParse(t, frameOf(t, path, opcode, filler(8)))
				if string(p.Payload()) != string(filler(8)) {
					t.Errorf("%v: payload %q", opcode, p.Payload())
				}
			}
		}
	}
}
