// SPDX-License-Identifier: Apache-2.0

package ib

import (
	"fmt"
	"testing"
)

// TestWCOpcodeNames checks that each operation has a name, and that other values print as a number.
func TestWCOpcodeNames(t *testing.T) {
	for opcode, want := range map[WCOpcode]string{
		WCSend: "send", WCRDMAWrite: "RDMA write", WCRDMARead: "RDMA read", WCCompSwap: "compare and swap", WCFetchAdd: "fetch and add",
		WCBindMW: "bind memory window", WCLocalInv: "local invalidate", WCRecv: "receive", WCRecvRDMAWithImm: "receive RDMA with immediate",
		7: "TCP segmentation", 0x82: "add tag", 10: "fast registration", 11: "operation(11)", 0x8a: "operation(138)", 0xff: "operation(255)",
	} {
		if got := opcode.String(); got != want {
			t.Errorf("%d: got %q, want %q", uint8(opcode), got, want)
		}
	}
}

// TestFlagNames checks that masks print as the names of their bits, and unnamed bits as a number.
func TestFlagNames(t *testing.T) {
	for _, row := range []struct {
		mask fmt.Stringer
		want string
	}{
		{SendFlags(0), "nothing"},
		{SendSignaled | SendInline, "SIGNALED, INLINE"},
		{SendFlags(0xff), "FENCE, SIGNALED, SOLICITED, INLINE, IP_CSUM, 0xe0"},
		{WCGRH | WCWithImm, "GRH, WITH_IMM"},
		{WCFlags(0xffff), "GRH, WITH_IMM, IP_CSUM_OK, WITH_INV, WITH_SMAC, WITH_VLAN, WITH_NETWORK_HDR_TYPE, 0xff80"},
		{AccessLocalWrite | AccessZeroBased, "LOCAL_WRITE, ZERO_BASED"},
		{AccessHugeTLB | 1<<31, "HUGETLB, 0x80000000"},
		{AccessRelaxedOrdering, "RELAXED_ORDERING"},
		{DeviceBadPKeyCntr | DeviceNNotifyCQ, "BAD_PKEY_CNTR, N_NOTIFY_CQ"},
		{PortCapIPBasedGIDs | 1, "IP_BASED_GIDS, 0x1"},
		{CQNextComp | CQReportMissedEvents, "NEXT_COMP, REPORT_MISSED_EVENTS"},
		{CQSingleThreaded | 4, "SINGLE_THREADED, 0x4"},
		{WCExWithByteLen | WCExWithCVLAN | 1<<63, "BYTE_LEN, CVLAN, 0x8000000000000000"},
		{SRQMaxWR | SRQLimit, "MAX_WR, LIMIT"},
		{ReregChangePD, "CHANGE_PD"},
		{JoinFullMember, "FULLMEMBER"}, {JoinSendOnlyFullMember, "SENDONLY_FULLMEMBER"},
		{JoinStateNonMember | JoinStateSendOnlyFullMember, "NONMEMBER, SENDONLY_FULLMEMBER"},
		{QPAttrState | QPAttrQKey | 1<<31, "state, Q_Key, 0x80000000"},
	} {
		if got := row.mask.String(); got != row.want {
			t.Errorf("%T: got %q, want %q", row.mask, got, row.want)
		}
	}
}

func TestRateNames(t *testing.T) {
	for rate, want := range map[Rate]string{
		RatePortCurrent: "the port's rate", Rate2p5Gbps: "2.5 Gbit/s", Rate5Gbps: "5 Gbit/s", Rate100Gbps: "100 Gbit/s", Rate1600Gbps: "1600 Gbit/s",
		1: "RATE(1)", 26: "RATE(26)", 255: "RATE(255)",
	} {
		if got := rate.String(); got != want {
			t.Errorf("%d: got %q, want %q", uint8(rate), got, want)
		}
	}
}
