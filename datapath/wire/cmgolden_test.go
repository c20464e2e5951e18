// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
)

// goldenMessages holds messages written by hand. Each field that no capture contains has a bit set, and adjacent
// reserved fields have none.
var goldenMessages = []struct {
	attribute Attribute
	contents  any
	data      []field
}{
	{AttributeMRA, MRA{CommIDs: CommIDs{1, 2}, Received: AnsweredLAP, ServiceTimeout: 0x15, PrivateData: [222]byte{7, 221: 8}}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"received", "80"}, {"service timeout", "a8"}, {"private data", "07"}, {"", zeros(220)}, {"", "08"},
	}},
	{AttributeREJ, REJ{
		CommIDs: CommIDs{1, 2}, Rejected: AnsweredREP, Reason: RejectConsumer, InfoLength: 72, Info: [72]byte{3, 71: 4}, PrivateData: [148]byte{7, 147: 8},
	}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"rejected", "40"}, {"info length", "90"}, {"reason", "001c"},
		{"info", "03"}, {"", zeros(70)}, {"", "04"}, {"private data", "07"}, {"", zeros(146)}, {"", "08"},
	}},
	{AttributeREP, REP{
		CommIDs: CommIDs{1, 2}, LocalQKey: 0x11223344, LocalQPN: 0x123456, LocalEECN: 0x234567, StartingPSN: 0x345678,
		ResponderResources: 0x0A, InitiatorDepth: 0x0B, TargetAckDelay: 0x15, Failover: 2, EndToEndFlowControl: true, RNRRetryCount: 5, SRQ: true,
		LocalCAGUID: 0x0102030405060708, PrivateData: [196]byte{7, 195: 8},
	}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"Q_Key", "11223344"}, {"QPN", "123456"}, {"reserved", "00"},
		{"EECN", "234567"}, {"reserved", "00"}, {"PSN", "345678"}, {"reserved", "00"}, {"responder resources", "0a"}, {"initiator depth", "0b"},
		{"ack delay 10101, failover 10, flow control 1", "ad"}, {"RNR retries 101, SRQ 1", "b0"}, {"CA GUID", "0102030405060708"},
		{"private data", "07"}, {"", zeros(194)}, {"", "08"},
	}},
	{AttributeREQ, REQ{
		LocalID: 1, ServiceID: 0x1112131415161718, LocalCAGUID: 0x0102030405060708, LocalQKey: 0x11223344, LocalQPN: 0x123456, ResponderResources: 0x0A,
		LocalEECN: 0x234567, InitiatorDepth: 0x0B, RemoteEECN: 0x345678, RemoteTimeout: 0x15, TransportService: 2, EndToEndFlowControl: true,
		StartingPSN: 0x456789, LocalTimeout: 0x0A, RetryCount: 5, PKey: 0x7FFF, PathMTU: MTU4096, RDCExists: true, RNRRetryCount: 2,
		MaxCMRetries: 9, SRQ: true, ExtendedTransport: 5, Primary: goldenPath, Alternate: goldenPath, PrivateData: [92]byte{7, 91: 8},
	}, append(append([]field{
		{"local id", "00000001"}, {"reserved", "00000000"}, {"service id", "1112131415161718"}, {"CA GUID", "0102030405060708"}, {"reserved", "00000000"},
		{"Q_Key", "11223344"}, {"QPN", "123456"}, {"responder resources", "0a"}, {"EECN", "234567"}, {"initiator depth", "0b"},
		{"remote EECN", "345678"}, {"remote timeout 10101, service 10, flow control 1", "ad"}, {"PSN", "456789"},
		{"local timeout 01010, retries 101", "55"}, {"P_Key", "7fff"}, {"MTU 0101, RDC 1, RNR retries 010", "5a"}, {"CM retries 1001, SRQ 1, extended 101", "9d"},
	}, append(goldenPathFields, goldenPathFields...)...), field{"private data", "07"}, field{"", zeros(90)}, field{"", "08"})},
	{AttributeLAP, LAP{CommIDs: CommIDs{1, 2}, RemoteQPN: 0x123456, RemoteTimeout: 0x15, Alternate: goldenPath, PrivateData: [168]byte{7, 167: 8}}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"reserved", "00000000"}, {"remote QPN", "123456"}, {"remote timeout 10101", "a8"}, {"reserved", "00000000"},
		{"local LID", "0102"}, {"remote LID", "0304"}, {"local GID", "fd990000000000000000000000000001"}, {"remote GID", "fd990000000000000000000000000002"},
		{"flow label, reserved", "abcde0"}, {"traffic class", "6a"}, {"hop limit", "07"}, {"rate", "2a"}, {"SL 1010, subnet local 1", "a8"}, {"ack timeout 10101", "a8"},
		{"private data", "07"}, {"", zeros(166)}, {"", "08"},
	}},
	{AttributeAPR, APR{CommIDs: CommIDs{1, 2}, InfoLength: 72, Status: APRUnsupported, Info: [72]byte{3, 71: 4}, PrivateData: [148]byte{7, 147: 8}}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"info length", "48"}, {"status", "02"}, {"reserved", "0000"},
		{"info", "03"}, {"", zeros(70)}, {"", "04"}, {"private data", "07"}, {"", zeros(146)}, {"", "08"},
	}},
	{AttributeRTU, RTU{CommIDs{1, 2}, [224]byte{7, 223: 8}}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"private data", "07"}, {"", zeros(222)}, {"", "08"},
	}},
	{AttributeDREP, DREP{CommIDs{1, 2}, [224]byte{7, 223: 8}}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"private data", "07"}, {"", zeros(222)}, {"", "08"},
	}},
	{AttributeDREQ, DREQ{CommIDs{1, 2}, 0x123456, [220]byte{7, 219: 8}}, []field{
		{"local id", "00000001"}, {"remote id", "00000002"}, {"remote QPN", "123456"}, {"reserved", "00"}, {"private data", "07"}, {"", zeros(218)}, {"", "08"},
	}},
	{AttributeSIDRReq, SIDRReq{0x01020304, 0x7FFF, 0x1112131415161718, [216]byte{7, 215: 8}}, []field{
		{"request id", "01020304"}, {"P_Key", "7fff"}, {"reserved", "0000"}, {"service id", "1112131415161718"}, {"private data", "07"}, {"", zeros(214)}, {"", "08"},
	}},
	{AttributeSIDRRep, SIDRRep{0x01020304, SIDRRedirect, 72, 0x123456, 0x1112131415161718, 0x11223344, [72]byte{3, 71: 4}, [136]byte{7, 135: 8}}, []field{
		{"request id", "01020304"}, {"status", "04"}, {"info length", "48"}, {"reserved", "0000"}, {"QPN", "123456"}, {"reserved", "00"}, {"service id", "1112131415161718"},
		{"Q_Key", "11223344"}, {"info", "03"}, {"", zeros(70)}, {"", "04"}, {"private data", "07"}, {"", zeros(134)}, {"", "08"},
	}},
}

var (
	goldenPath = CMPath{
		LocalLID: 0x0102, RemoteLID: 0x0304, Local: gid("fd99::1"), Remote: gid("fd99::2"), FlowLabel: 0xABCDE, PacketRate: 0x2A,
		TrafficClass: 0x6A, HopLimit: 7, SL: 10, SubnetLocal: true, AckTimeout: 0x15,
	}
	goldenPathFields = []field{
		{"local LID", "0102"}, {"remote LID", "0304"}, {"local GID", "fd990000000000000000000000000001"}, {"remote GID", "fd990000000000000000000000000002"},
		{"flow label, reserved", "abcde0"}, {"rate", "2a"}, {"traffic class", "6a"}, {"hop limit", "07"}, {"SL 1010, subnet local 1", "a8"}, {"ack timeout 10101", "a8"},
	}
)

func zeros(n int) string { return strings.Repeat("00", n) }

// TestGoldenMessages compares reading and writing with bytes written by hand.
func TestGoldenMessages(t *testing.T) {
	for _, golden := range goldenMessages {
		header := fmt.Sprintf("0107020300000000%016x%04x000000000000", uint64(0xA1A2A3A4A5A6A7A8), uint16(golden.attribute))
		var text strings.Builder
		text.WriteString(header)
		for _, f := range golden.data {
			text.WriteString(f.bytes)
		}
		want, err := hex.DecodeString(text.String())
		if err != nil || len(want) != MADLen {
			t.Fatalf("%v: %d bytes written out, %v", golden.attribute, len(want), err)
		}
		got := read(MAD(want))
		if got.contents != golden.contents {
			t.Errorf("%v: read\n%+v, want\n%+v", golden.attribute, got.contents, golden.contents)
		}
		built := dirty()
		got.put(built, 0xA1A2A3A4A5A6A7A8)
		if !bytes.Equal(built, want) {
			t.Errorf("%v: written\n%x, want\n%x", golden.attribute, built, want)
		}
	}
	if len(goldenMessages) != len(attributeNames) {
		t.Errorf("%d messages of %d are written out", len(goldenMessages), len(attributeNames))
	}
}
