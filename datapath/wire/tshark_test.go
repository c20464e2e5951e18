// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/roced/roced/internal/needs"
)

// tsharkFields are the fields that TestTsharkAgrees requests from tshark, in this order.
var tsharkFields = []string{
	"_ws.malformed", "vlan.id", "ip.checksum.status", "ip.dsfield", "ipv6.tclass", "ipv6.flow", "ip.ttl", "ipv6.hlim",
	"ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "ip.id", "ip.flags.df", "udp.srcport", "udp.dstport", "udp.length",
	"infiniband.bth.opcode", "infiniband.bth.se", "infiniband.bth.m", "infiniband.bth.padcnt", "infiniband.bth.tver",
	"infiniband.bth.p_key", "infiniband.bth.destqp", "infiniband.bth.a", "infiniband.bth.psn",
	"infiniband.deth.q_key", "infiniband.deth.srcqp", "infiniband.immdt", "infiniband.invariant.crc", "data.data",
}

// decode returns tshark's fields of each frame, by name.
func decode(t *testing.T, fields []string, frames [][]byte) (decoded []map[string]string) {
	t.Helper()
	needs.Tools(t, "tshark")
	args := []string{"-n", "-r", writePcap(t, frames), "-o", "ip.check_checksum:TRUE", "-T", "fields", "-E", "separator=|"}
	for _, field := range fields {
		args = append(args, "-e", field)
	}
	for _, line := range judge(t, "tshark", args...) {
		row := map[string]string{}
		for i, value := range strings.Split(line, "|") {
			row[fields[i]] = value
		}
		decoded = append(decoded, row)
	}
	if len(decoded) != len(frames) {
		t.Fatalf("%d lines for %d frames", len(decoded), len(frames))
	}
	return decoded
}

// TestTsharkAgrees has tshark decode our datagrams. tshark does not verify ICRCs, counts the pad as data, and reports
// valid datagrams without payload as malformed.
func TestTsharkAgrees(t *testing.T) {
	all := append(exhibits(t, false), exhibits(t, true)...)
	for i, got := range decode(t, tsharkFields, frames(all)) {
		for field, want := range expected(all[i]) {
			if got[field] != want {
				t.Errorf("frame %d: %s is %q, want %q", i, field, got[field], want)
			}
		}
	}
}

// expected returns the expected tshark fields of a frame.
func expected(e exhibit) map[string]string {
	want := map[string]string{
		"vlan.id":               "",
		"udp.dstport":           "4791",
		"udp.length":            fmt.Sprint(len(e.frame) - ipOffset(e) - ipLength(e)),
		"udp.srcport":           fmt.Sprint(expectedPort(e)),
		"infiniband.bth.opcode": fmt.Sprint(uint8(opcodeOf(&e.d))),
		"infiniband.bth.se":     fmt.Sprint(bit(e.d.Solicited)),
		"infiniband.bth.m":      "1",
		"infiniband.bth.padcnt": fmt.Sprint(-len(e.payload) & 3),
		"infiniband.bth.tver":   "0",
		"infiniband.bth.p_key":  fmt.Sprint(uint16(e.d.PKey)),
		"infiniband.bth.destqp": e.d.DestQP.String(),
		"infiniband.bth.a":      "0",
		"infiniband.bth.psn":    fmt.Sprint(uint32(e.d.PSN)),
		"infiniband.deth.q_key": fmt.Sprintf("0x%016x", uint32(e.d.QKey)),
		"infiniband.deth.srcqp": fmt.Sprintf("0x%08x", uint32(e.d.SourceQP)),
		"infiniband.immdt":      "",
	}
	if e.path.VLAN != 0 {
		want["vlan.id"] = fmt.Sprint(e.path.VLAN)
	}
	if e.d.HasImm {
		want["infiniband.immdt"] = fmt.Sprintf("%08x,%08[1]x", e.d.Imm) // tshark has two fields of this name
	}
	if len(e.payload) > 0 {
		want["_ws.malformed"] = ""
		want["data.data"] = fmt.Sprintf("%x%s", e.payload, strings.Repeat("00", -len(e.payload)&3))
		want["infiniband.invariant.crc"] = fmt.Sprintf("0x%x", e.frame[len(e.frame)-ICRCLen:])
	}
	if e.path.Dest.IsIPv4() {
		maps.Copy(want, expectedIPv4(e))
	} else {
		maps.Copy(want, expectedIPv6(e))
	}
	return want
}

func ipOffset(e exhibit) int {
	if e.path.VLAN != 0 {
		return 18
	}
	return 14
}

func ipLength(e exhibit) int {
	if e.path.Dest.IsIPv4() {
		return 20
	}
	return 40
}

func expectedPort(e exhibit) uint16 {
	if e.path.FlowLabel == 0 {
		return SourcePort(FlowLabel(e.d.SourceQP, e.d.DestQP))
	}
	return SourcePort(e.path.FlowLabel)
}

func expectedIPv4(e exhibit) map[string]string {
	return map[string]string{
		"ip.checksum.status": "1", // good
		"ip.dsfield":         fmt.Sprintf("0x%02x", e.path.TrafficClass),
		"ip.ttl":             fmt.Sprint(hopsOf(e.path)),
		"ip.src":             e.path.Source.Addr().String(),
		"ip.dst":             e.path.Dest.Addr().String(),
		"ip.id":              fmt.Sprintf("0x%04x", e.d.ID),
		"ip.flags.df":        "1",
		"ipv6.src":           "",
	}
}

func expectedIPv6(e exhibit) map[string]string {
	return map[string]string{
		"ipv6.tclass": fmt.Sprintf("0x%08x", e.path.TrafficClass),
		"ipv6.flow":   fmt.Sprintf("0x%06x", e.path.FlowLabel),
		"ipv6.hlim":   fmt.Sprint(hopsOf(e.path)),
		"ipv6.src":    e.path.Source.Addr().String(),
		"ipv6.dst":    e.path.Dest.Addr().String(),
		"ip.src":      "",
	}
}

// tsharkHeaders are the tshark fields of the extended headers.
var tsharkHeaders = map[HeaderMask]string{
	HeaderDETH: "infiniband.deth", HeaderRETH: "infiniband.reth", HeaderAtomicETH: "infiniband.atomiceth", HeaderAETH: "infiniband.aeth",
	HeaderAtomicAckETH: "infiniband.atomicacketh", HeaderImm: "infiniband.immdt", HeaderIETH: "infiniband.ieth",
}

// TestTsharkAgreesOnOpcodes has tshark find the extended headers and the payload of the connected opcodes. tshark does
// not support XRC, and assumes an RDETH of 0 bytes.
func TestTsharkAgreesOnOpcodes(t *testing.T) {
	fields := append(slices.Collect(maps.Values(tsharkHeaders)), "_ws.malformed", "infiniband.invariant.crc", "data.data")
	var codes []Opcode
	var packets [][]byte
	for opcode := range specified {
		if s := opcode.Service(); s == ServiceRC || s == ServiceUC {
			codes = append(codes, opcode)
			packets = append(packets, frameOf(t, pathIPv4, opcode, payloadOf(opcode)))
		}
	}
	for i, got := range decode(t, fields, packets) {
		frame, opcode := packets[i], codes[i]
		data, crc := got["data.data"], got["infiniband.invariant.crc"]
		if got["_ws.malformed"] != "" || data != fmt.Sprintf("%x", payloadOf(opcode)) || crc != fmt.Sprintf("0x%x", frame[len(frame)-ICRCLen:]) {
			t.Errorf("%v: malformed %q, data %s, ICRC %s", opcode, got["_ws.malformed"], data, crc)
		}
		for mask, field := range tsharkHeaders {
			if shown := got[field] != ""; shown != (opcodes[opcode].Mask&mask != 0) {
				t.Errorf("%v: tshark shows %s: %v", opcode, field, shown)
			}
		}
	}
}

// TestTsharkReadsXRC has tshark read the part of an XRC packet that it supports: the BTH. The bytes after the XRCETH
// equal those of RC (TestXRCETH), which tshark reads.
func TestTsharkReadsXRC(t *testing.T) {
	fields := []string{"infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.a", "infiniband.bth.p_key"}
	var codes []Opcode
	var packets [][]byte
	for _, opcode := range connectedOpcodes() {
		if opcode.Service() == ServiceXRC {
			codes = append(codes, opcode)
			packets = append(packets, buildTransport(t, pathIPv4, transport(opcode), payloadOf(opcode)))
		}
	}
	for i, got := range decode(t, fields, packets) {
		want := map[string]string{
			"infiniband.bth.opcode": fmt.Sprint(uint8(codes[i])), "infiniband.bth.destqp": "0x123456", "infiniband.bth.psn": fmt.Sprint(0xDEF012),
			"infiniband.bth.a": "1", "infiniband.bth.p_key": "65535",
		}
		for field, value := range want {
			if got[field] != value {
				t.Errorf("%v: tshark shows %s %q, want %q", codes[i], field, got[field], value)
			}
		}
	}
}

// payloadOf returns a payload that the opcode may have, longer than the headers that tshark expects in it.
func payloadOf(opcode Opcode) []byte {
	if opcodes[opcode].Mask&HeaderNoPayload != 0 {
		return nil
	}
	return filler(64)
}
