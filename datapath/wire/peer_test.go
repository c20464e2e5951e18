// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// captures lists the frames of each capture of testdata/peer by opcode, or by the fault that Parse returns. Frames that
// are not RoCE are ARP, IGMP, MLD and ICMP.
var captures = map[string]map[string]int{
	"atomic_lat_rc":       {"RC_FETCH_ADD": 5, "RC_ATOMIC_ACKNOWLEDGE": 5},
	"mckey_m":             {"UD_SEND_ONLY_WITH_IMMEDIATE": 4, "not_roce": 7},
	"mckey_noloop":        {"not_roce": 3},
	"mckey_v6":            {"not_roce": 1},
	"rc_pingpong":         {"RC_SEND_ONLY": 8, "RC_ACKNOWLEDGE": 8},
	"rdmacm_nolistener":   {"UD_SEND_ONLY": 2},
	"read_lat_rc":         {"RC_RDMA_READ_REQUEST": 5, "RC_RDMA_READ_RESPONSE_ONLY": 5},
	"rping":               {"RC_RDMA_WRITE_ONLY": 2, "UD_SEND_ONLY": 5, "RC_RDMA_READ_REQUEST": 2, "RC_RDMA_READ_RESPONSE_ONLY": 2, "RC_ACKNOWLEDGE": 10, "RC_SEND_ONLY": 8, "not_roce": 4},
	"send_bw_ud":          {"UD_SEND_ONLY": 8},
	"send_bw_ud_mcast_v4": {"UD_SEND_ONLY": 8, "not_roce": 4},
	"send_lat_ud":         {"UD_SEND_ONLY": 10},
	"sidr_nolistener":     {"UD_SEND_ONLY": 2, "not_roce": 4},
	"uc_pingpong":         {"UC_SEND_ONLY": 8, "not_roce": 4},
	"ucmatose":            {"UD_SEND_ONLY": 5, "RC_ACKNOWLEDGE": 4, "RC_SEND_ONLY": 4},
	"ud_4096_v6":          {"UD_SEND_ONLY": 15},
	"ud_bad_qkey":         {"UD_SEND_ONLY": 1, "not_roce": 2},
	"ud_imm":              {"UD_SEND_ONLY_WITH_IMMEDIATE": 5},
	"ud_imm_v6":           {"UD_SEND_ONLY_WITH_IMMEDIATE": 8},
	"ud_mcast_v6":         {"UD_SEND_ONLY": 4},
	"ud_pingpong":         {"UD_SEND_ONLY": 8},
	"ud_pingpong_1024":    {"UD_SEND_ONLY": 6},
	"ud_pingpong_v6":      {"UD_SEND_ONLY": 8, "not_roce": 4},
	"ud_sizes":            {"UD_SEND_ONLY": 8, "not_roce": 1},
	"ud_tclass":           {"UD_SEND_ONLY": 1, "UD_SEND_ONLY_WITH_IMMEDIATE": 1},
	"ud_tclass_v6":        {"UD_SEND_ONLY_WITH_IMMEDIATE": 2},
	"udaddy":              {"UD_SEND_ONLY": 2, "UD_SEND_ONLY_WITH_IMMEDIATE": 6},
	"udaddy_tos":          {"UD_SEND_ONLY": 2, "UD_SEND_ONLY_WITH_IMMEDIATE": 6},
	"write_lat_rc":        {"RC_RDMA_WRITE_ONLY": 10, "RC_ACKNOWLEDGE": 10},
}

func peerFrames(t testing.TB, capture string) [][]byte {
	t.Helper()
	return readPcap(t, filepath.Join("testdata", "peer", capture+".pcap"))
}

// peerPackets returns the RoCE frames of all captures.
func peerPackets(t testing.TB) (frames [][]byte) {
	t.Helper()
	var p Packet
	for capture := range captures {
		for _, frame := range peerFrames(t, capture) {
			if Parse(frame, &p) == FaultNone {
				frames = append(frames, frame)
			}
		}
	}
	if len(frames) != 223 {
		t.Fatalf("%d RoCE frames in all captures", len(frames))
	}
	return frames
}

// TestPeerCaptures parses every frame that the peer sent, compares the numbers of each kind, and checks the ICRCs.
func TestPeerCaptures(t *testing.T) {
	files, err := filepath.Glob("testdata/peer/*.pcap")
	if err != nil || len(files) != len(captures) {
		t.Fatalf("%d capture files, %d expected, %v", len(files), len(captures), err)
	}
	for capture, want := range captures {
		got := map[string]int{}
		for i, frame := range peerFrames(t, capture) {
			var p Packet
			if fault := Parse(frame, &p); fault != FaultNone {
				got[fault.String()]++
				continue
			}
			got[p.BTH().Opcode().String()]++
			checkPeerPacket(t, capture, i+1, frame, &p)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", capture, got, want)
		}
	}
}

func checkPeerPacket(t *testing.T, capture string, number int, frame []byte, p *Packet) {
	t.Helper()
	before := bytes.Clone(frame)
	if !p.CheckICRC() {
		t.Errorf("%s frame %d: ICRC wrong", capture, number)
	}
	if !bytes.Equal(frame, before) {
		t.Errorf("%s frame %d: changed by CheckICRC", capture, number)
	}
	if v6 := strings.HasSuffix(capture, "_v6"); p.IsIPv6() != v6 {
		t.Errorf("%s frame %d: IPv6 %v", capture, number, p.IsIPv6())
	}
	if p.BTH().PKey() != PKeyDefault || p.BTH().MigReq() {
		t.Errorf("%s frame %d: P_Key %v, MigReq %v", capture, number, p.BTH().PKey(), p.BTH().MigReq())
	}
}

// TestPeerFields compares the accessors with the parameters of the programs that sent the packets
// (testdata/peer/README.md).
func TestPeerFields(t *testing.T) {
	t.Run("payload lengths", func(t *testing.T) {
		payloads, pads := payloadLengths(t, "ud_sizes")
		equalInts(t, "payload", payloads, []int{0, 1, 2, 3, 4, 5, 256, 1024})
		equalInts(t, "pad", pads, []int{0, 3, 2, 1, 0, 3, 0, 0})
		payloads, pads = payloadLengths(t, "ud_4096_v6")
		equalInts(t, "payload", payloads, []int{0, 1, 3, 4, 63, 64, 1023, 1024, 1025, 2047, 2048, 2049, 3000, 4095, 4096})
		equalInts(t, "pad", pads, []int{0, 3, 1, 0, 1, 0, 1, 0, 3, 1, 0, 3, 0, 1, 0})
	})
	t.Run("traffic class over IPv6", func(t *testing.T) {
		for _, frame := range peerFrames(t, "ud_tclass_v6") {
			p := mustParse(t, frame)
			var grh [GRHLen]byte
			p.PutGRH(&grh)
			if g := GRH(grh[:]); g.TrafficClass() != 0x6a || g.HopLimit() != 64 || g.FlowLabel() != 0 {
				t.Errorf("class %#x, hop limit %d, flow label %#x", g.TrafficClass(), g.HopLimit(), g.FlowLabel())
			}
		}
	})
	t.Run("group over IPv6", func(t *testing.T) {
		group := gid("ff0e::77:1")
		for _, frame := range peerFrames(t, "ud_mcast_v6") {
			p := mustParse(t, frame)
			if p.Destination() != group || MAC(frame) != MulticastMAC(group) || p.BTH().DestQP() != QPNMulticast {
				t.Errorf("to %v at %v, %v", p.Destination(), MAC(frame), p.BTH().DestQP())
			}
		}
	})
	t.Run("immediate data and solicited", func(t *testing.T) {
		// The script passed 1, 0xdeadbeef, … to libibverbs without converting them to network order.
		imms := []uint32{0x01000000, 0xEFBEADDE, 0xBEBAFECA, 0x04030201, 0xFFFFFFFF}
		for i, frame := range peerFrames(t, "ud_imm") {
			p := mustParse(t, frame)
			if p.Imm() != imms[i] || p.BTH().Solicited() != (i == 3) || !p.Has(HeaderDETH|HeaderImm) {
				t.Errorf("frame %d: immediate %#x, solicited %v", i, p.Imm(), p.BTH().Solicited())
			}
		}
	})
	t.Run("group", func(t *testing.T) {
		for _, frame := range peerFrames(t, "mckey_m") {
			var p Packet
			if Parse(frame, &p) != FaultNone {
				continue
			}
			group := gid("239.1.2.3")
			if p.Destination() != group || MAC(frame) != MulticastMAC(group) || p.BTH().DestQP() != QPNMulticast ||
				p.Imm() != uint32(p.DETH().SrcQP()) || p.DETH().QKey() != 0x01234567 {
				t.Errorf("to %v at %v, %v, Q_Key %v", p.Destination(), MAC(frame), p.BTH().DestQP(), p.DETH().QKey())
			}
		}
	})
	t.Run("connection management", func(t *testing.T) {
		for _, frame := range peerFrames(t, "sidr_nolistener") {
			var p Packet
			if Parse(frame, &p) != FaultNone {
				continue
			}
			if p.BTH().DestQP() != QPNGSI || p.DETH().SrcQP() != QPNGSI || p.DETH().QKey() != QKeyGSI ||
				!p.BTH().AckReq() || len(p.Payload()) != 256 {
				t.Errorf("%v to %v, Q_Key %v, %d bytes", p.DETH().SrcQP(), p.BTH().DestQP(), p.DETH().QKey(), len(p.Payload()))
			}
		}
	})
	t.Run("addresses", func(t *testing.T) {
		p := mustParse(t, peerFrames(t, "ud_imm")[0])
		if p.Source() != gid("10.99.0.3") || p.Destination() != gid("10.99.0.2") || p.SourceMAC().String() != "52:54:00:90:6c:a2" {
			t.Errorf("from %v (%v) to %v", p.Source(), p.SourceMAC(), p.Destination())
		}
		if id, tagged := p.VLAN(); tagged {
			t.Errorf("VLAN %d", id)
		}
	})
}

// payloadLengths returns the lengths of the payloads and pads of a capture.
func payloadLengths(t *testing.T, capture string) (payloads, pads []int) {
	t.Helper()
	for _, frame := range peerFrames(t, capture) {
		var p Packet
		if Parse(frame, &p) == FaultNone {
			payloads = append(payloads, len(p.Payload()))
			pads = append(pads, p.BTH().PadCount())
		}
	}
	return payloads, pads
}

func equalInts(t *testing.T, what string, got, want []int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %v, want %v", what, got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
}
