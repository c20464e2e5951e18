// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/hex"
	"testing"
)

// private returns private data that begins with these bytes, in hexadecimal.
func private(t testing.TB, size int, begin string) []byte {
	t.Helper()
	b, err := hex.DecodeString(begin)
	if err != nil {
		t.Fatal(err)
	}
	return append(b, make([]byte, size-len(b))...)
}

// addressHeader returns the private data of a request from 10.99.0.3 to 10.99.0.2.
func addressHeader(port string) string {
	return "0040" + port + "000000000000000000000000" + "0a630003" + "000000000000000000000000" + "0a630002"
}

// peerPath returns the path in the peer's requests for connections.
func peerPath(label uint32) CMPath {
	return CMPath{
		LocalLID: 0xFFFF, RemoteLID: 0xFFFF, Local: gid("10.99.0.3"), Remote: gid("10.99.0.2"),
		FlowLabel: label, HopLimit: 64, AckTimeout: 19,
	}
}

// peerREQ returns the common fields of the peer's requests for connections.
func peerREQ(t *testing.T, id CommID, port uint16, qpn QPN, psn PSN, label uint32, sourcePort string) REQ {
	return REQ{
		LocalID: id, ServiceID: ServiceIDFor(PortSpaceTCP, port), LocalCAGUID: 0x505400fffe906ca2, LocalQPN: qpn, StartingPSN: psn,
		ResponderResources: 1, InitiatorDepth: 1, RemoteTimeout: 20, LocalTimeout: 20, RetryCount: 7, PKey: PKeyDefault,
		PathMTU: MTU1024, RNRRetryCount: 7, MaxCMRetries: 15, Primary: peerPath(label),
		PrivateData: [92]byte(private(t, 92, addressHeader(sourcePort))),
	}
}

// TestPeerMessages compares the captured messages with the parameters of the programs that sent them
// (testdata/peer/README.md).
func TestPeerMessages(t *testing.T) {
	udp, sidr := ServiceIDFor(PortSpaceUDP, 7174), func(id uint32, port string) SIDRReq {
		return SIDRReq{
			RequestID: id, PKey: PKeyDefault, ServiceID: ServiceIDFor(PortSpaceUDP, 7174),
			PrivateData: [216]byte(private(t, 216, addressHeader(port))),
		}
	}
	rep := REP{
		ResponderResources: 1, InitiatorDepth: 1, TargetAckDelay: 15, RNRRetryCount: 7, LocalCAGUID: 0x505400fffec9313f,
	}
	repTo := func(ids CommIDs, qpn QPN, psn PSN) REP {
		rep.CommIDs, rep.LocalQPN, rep.StartingPSN = ids, qpn, psn
		return rep
	}
	for capture, want := range map[string][]any{
		"udaddy":          {sidr(0x4d5586ee, "cfc5"), SIDRRep{RequestID: 0x4d5586ee, QPN: 31, ServiceID: udp, QKey: 0x01234567}},
		"sidr_nolistener": {sidr(0x4b5586ee, "b4d2"), SIDRRep{RequestID: 0x4b5586ee, Status: SIDRNotSupported, ServiceID: udp}},
		"rdmacm_nolistener": {
			peerREQ(t, 0x4a5586ee, 7174, 37, 0xdfee8d, 0x87306, "c900"),
			REJ{CommIDs: CommIDs{Remote: 0x4a5586ee}, Rejected: AnsweredREQ, Reason: RejectServiceID},
		},
		"rping": {
			peerREQ(t, 0x4e5586ee, 7174, 33, 0xce21ec, 0x30861, "9c45"),
			repTo(CommIDs{0x05477a31, 0x4e5586ee}, 34, 0x92a867),
			RTU{CommIDs: CommIDs{0x4e5586ee, 0x05477a31}},
			DREQ{CommIDs: CommIDs{0x4e5586ee, 0x05477a31}, RemoteQPN: 34},
			DREP{CommIDs: CommIDs{0x05477a31, 0x4e5586ee}},
		},
		"ucmatose": {
			ucmatoseREQ(t),
			repTo(CommIDs{0x09477a31, 0x485586ee}, 36, 0xca9e5f),
			RTU{CommIDs: CommIDs{0x485586ee, 0x09477a31}},
			DREQ{CommIDs: CommIDs{0x09477a31, 0x485586ee}, RemoteQPN: 35},
			DREP{CommIDs: CommIDs{0x485586ee, 0x09477a31}},
		},
	} {
		all := managed(t, capture)
		if len(all) != len(want) {
			t.Fatalf("%s: %d messages, want %d", capture, len(all), len(want))
		}
		for i, m := range all {
			if got := read(m).contents; got != want[i] {
				t.Errorf("%s message %d:\n%+v, want\n%+v", capture, i+1, got, want[i])
			}
		}
	}
}

// ucmatoseREQ returns the request of ucmatose, whose retry counts differ from those of rping.
func ucmatoseREQ(t *testing.T) REQ {
	f := peerREQ(t, 0x485586ee, 7471, 35, 0x8be7c3, 0x0194e, "8401")
	f.RetryCount, f.RNRRetryCount = 5, 0
	return f
}
