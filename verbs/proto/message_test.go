// SPDX-License-Identifier: Apache-2.0

package proto

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// onePiece is memory of which a place is known by its first byte.
type onePiece []byte

func (s onePiece) PlaceOf(memory []byte) (Place, error) {
	offset := cap(s) - cap(memory)
	return Place{Offset: uint64(offset), Length: uint64(len(memory))}, nil
}

func (s onePiece) At(p Place) ([]byte, error) {
	if _, err := p.Of(s); err != nil {
		return nil, err
	}
	return s[p.Offset:][:p.Length], nil
}

var shared = make(onePiece, 4096)

// golden are packets byte by byte.
func TestGolden(t *testing.T) {
	packet, err := CreateQP.EncodeRequest(0x01020304, &provider.CreateQPRequest{
		PD: 0x11, Type: verbs.QPTypeUD, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 2, MaxSendSGE: 3, MaxRecvSGE: 4, MaxInlineData: 5},
		SigAll: true, SendCQ: 0x22, RecvCQ: 0x33, DoorbellIndex: 6, CompletionToken: 7, EventID: 8,
	})
	want := []byte{
		64, 0, // command: create_qp
		1, 0, // kind: request
		4, 3, 2, 1, // id
		0x11, 0, 0, 0, // PD
		0x22, 0, 0, 0, // send CQ
		0x33, 0, 0, 0, // receive CQ
		1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, // capacities
		6, 0, 0, 0, // doorbell index
		7, 0, 0, 0, // completion token
		8, 0, 0, 0, 0, 0, 0, 0, // EventID
		4,          // type: UD
		1,          // all signaled
		0,          // block self multicast
		0,          // port
		0, 0, 0, 0, // SRQ
	}
	if err != nil || !bytes.Equal(packet, want) {
		t.Errorf("%v\n%v, want\n%v", err, packet, want)
	}
	grant := provider.MRGrant{MR: 1, LKey: 2, Memory: shared[0x80:0x180]}
	packet, err = AllocMR.EncodeGrant(9, &grant, shared)
	want = []byte{
		34, 0, 3, 0, 9, 0, 0, 0, // alloc_mr, reply, id
		1, 0, 0, 0, // MR
		2, 0, 0, 0, // lkey
		0x80, 0, 0, 0, 0, 0, 0, 0, // offset
		0, 1, 0, 0, 0, 0, 0, 0, // length
	}
	if err != nil || !bytes.Equal(packet, want) {
		t.Errorf("%v\n%v, want\n%v", err, packet, want)
	}
}

// Decoding returns the encoded values.
func TestRoundTrip(t *testing.T) {
	for _, group := range []netip.Addr{{}, netip.MustParseAddr("239.1.2.3"), netip.MustParseAddr("ff02::1%eth0"), netip.MustParseAddr("::ffff:224.0.0.1")} {
		requestCrosses(t, JoinMulticast, provider.JoinMulticastRequest{Group: group, State: 9})
	}
	requestCrosses(t, AllocMR, provider.AllocMRRequest{PD: 1, Length: -1 << 63, Access: 1 << 31})
	requestCrosses(t, CreateAH, provider.CreateAHRequest{PD: 1, NoWait: true, Attr: verbs.AHAttr{Port: 1, SL: 2, GRH: verbs.GlobalRoute{DGID: verbs.GID{1, 15: 2}, SGIDIndex: -3, FlowLabel: 4, HopLimit: 5, TrafficClass: 6}}})
	requestCrosses(t, ModifyQP, provider.ModifyQPRequest{QP: 1, Mask: 2, CompletionToken: 3, Attr: verbs.QPAttr{State: 4, CurState: 5, PKeyIndex: 6, Port: 7, QKey: 8, SQPSN: 9, Cap: verbs.QPCap{MaxSendWR: 10}, EnSQDAsyncNotify: true,
		DestQPN: 11, RQPSN: 12, AccessFlags: 13, PathMTU: 1, PathMigState: 2, MaxRDAtomic: 14, MaxDestRDAtomic: 15, MinRNRTimer: 16, Timeout: 17, RetryCnt: 3, RNRRetry: 4,
		AHAttr: verbs.AHAttr{Port: 1, SL: 2, GRH: verbs.GlobalRoute{DGID: verbs.GID{1, 15: 2}, SGIDIndex: 3, FlowLabel: 4, HopLimit: 5, TrafficClass: 6}}}})
	requestCrosses(t, ShareMemory, ShareMemoryRequest{HasFile: true, Size: 1 << 48})
	grantCrosses(t, ShareMemory, SharedMemory{Size: MaxProcessFile})
	requestCrosses(t, RegMR, RegMRRequest{PD: 1, Access: 2, Length: -3, IOVA: 1 << 63, Offset: 1 << 47})
	requestCrosses(t, ReregMRMemory, ReregMRMemoryRequest{MR: 1, Flags: 2, PD: 3, Access: 4, IOVA: 5, Length: 6, Offset: 7})
	requestCrosses(t, RegDMMR, provider.RegDMMRRequest{PD: 1, DM: 2, Offset: 3, Length: 4, Access: verbs.AccessLocalWrite})
	grantCrosses(t, RegDMMR, provider.MRGrant{MR: 1, LKey: 2})
	requestCrosses(t, AttachCounters, provider.AttachCountersRequest{Counters: 1, Of: 2, What: 3, Index: 4})
	grantCrosses(t, ReadQPCounters, provider.ReadCountersGrant{Values: [ib.MaxCounters]uint64{1, 2, 15: 1 << 63}})
	requestCrosses(t, AllocFastMR, provider.AllocFastMRRequest{PD: 1, Type: 2, Entries: 3})
	requestCrosses(t, AllocCoherent, provider.AllocCoherentRequest{Length: 5})
	requestCrosses(t, MapFMR, provider.MapFMRRequest{MR: 1, Key: 2, Reg: ring.Reg{Length: 3, Access: 4, Count: 5}, IOVA: 6})
	requestCrosses(t, CheckMRStatus, provider.CheckMRStatusRequest{MR: 1})
	grantCrosses(t, CheckMRStatus, provider.CheckMRStatusGrant{Failed: true, Err: ib.SigErr{Type: 1, Expected: 2, Actual: 3, Offset: 4, Key: 5}})
	requestCrosses(t, UnmapFMR, provider.UnmapFMRRequest{MR: 1})
	requestCrosses(t, AllocNullMR, provider.AllocNullMRRequest{PD: 1})
	grantCrosses(t, AllocNullMR, provider.MRGrant{MR: 1, LKey: 2})
	requestCrosses(t, AllocMW, provider.AllocMWRequest{PD: 1, Type: verbs.MWType2})
	grantCrosses(t, AllocMW, provider.AllocMWGrant{MW: 1, RKey: 2})
	grantCrosses(t, QueryDevice, verbs.DeviceAttr{Name: "eth0", FirmwareVersion: "v1", NodeGUID: 1 << 63, MaxQP: 1, MaxMRSize: 1 << 40, SendReason: "why"})
	grantCrosses(t, QueryPort, verbs.PortAttr{State: 4, MaxMTU: 5, ActiveMTU: 3, GIDTableLen: 16, MaxMsgSize: 1024, QKeyViolations: 1 << 50, InterfaceMTU: 1500})
	grantCrosses(t, QueryGIDTable, provider.QueryGIDTableGrant{Length: 16, Entries: []verbs.GIDEntry{{GID: verbs.GID{1}, Index: 0, Interface: "eth0"}, {GID: verbs.GID{2}, Index: 3, Interface: "eth0"}}})
	grantCrosses(t, Counters, []verbs.Counter{{Place: "engine", Name: "sent", Value: 7}, {Place: "XDP", Name: "drop", Value: 1 << 60, Lost: true}})
	grantCrosses(t, CreateQP, provider.CreateQPGrant{QP: 1, Number: 2, Cap: verbs.QPCap{MaxRecvSGE: 3}, SendMemory: shared[128:256], SendGeometry: ring.Geometry{Entries: 4, Stride: 64}})
	grantCrosses(t, Hello, Welcome{Version: 1, Devices: []string{"eth0", "eth1"}})
}

func requestCrosses[Q, G any](t *testing.T, c Command[Q, G], want Q) {
	t.Helper()
	packet, err := c.EncodeRequest(1, &want)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(packet)
	if err != nil || m.Code != c.Number {
		t.Fatal(m, err)
	}
	if got, err := c.DecodeRequest(m.Body); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v: %+v, want %+v", c.Name, err, got, want)
	}
}

func grantCrosses[Q, G any](t *testing.T, c Command[Q, G], want G) {
	t.Helper()
	packet, err := c.EncodeGrant(1, &want, shared)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(packet)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.DecodeGrant(m.Body, shared); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %v: %+v, want %+v", c.Name, err, got, want)
	}
}

// Values that cannot be encoded are an error of the caller.
func TestTooLong(t *testing.T) {
	group := netip.MustParseAddr("ff02::1").WithZone(strings.Repeat("z", nameLen))
	_, err := JoinMulticast.EncodeRequest(1, &provider.JoinMulticastRequest{Group: group})
	if !errors.Is(err, verbs.ErrInvalid) {
		t.Errorf("a long zone: %v", err)
	}
	long := verbs.DeviceAttr{SendReason: strings.Repeat("ä", 300)}
	packet, err := QueryDevice.EncodeGrant(1, &long, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := QueryDevice.DecodeGrant(packet[headerLen:], nil); err != nil || got.SendReason != strings.Repeat("ä", 127) {
		t.Errorf("a long reason: %v %q", err, got.SendReason)
	}
}

// The largest messages fit.
func TestMaxMessage(t *testing.T) {
	grantCrosses(t, Counters, make([]verbs.Counter, maxCounters))
	grantCrosses(t, QueryGIDTable, provider.QueryGIDTableGrant{Entries: make([]verbs.GIDEntry, MaxGIDs)})
	grantCrosses(t, Hello, Welcome{Devices: make([]string, maxDevices)})
	grantCrosses(t, ListDevices, make([]ListedDevice, maxDevices))
}

// Malformed messages are refused.
func TestMalformed(t *testing.T) {
	good, err := CreateCQ.EncodeRequest(1, &provider.CreateCQRequest{Entries: 1})
	if err != nil {
		t.Fatal(err)
	}
	body := good[headerLen:]
	rows := map[string]error{}
	_, rows["empty packet"] = Parse(nil)
	_, rows["short packet"] = Parse(good[:7])
	_, rows["kind 0"] = Parse(make([]byte, 8))
	_, rows["kind 6"] = Parse([]byte{0, 0, 6, 0, 0, 0, 0, 0})
	_, rows["half a request"] = CreateCQ.DecodeRequest(body[:len(body)/2])
	_, rows["too long a request"] = CreateCQ.DecodeRequest(append(bytes.Clone(body), 0))
	_, rows["reserved bytes"] = DeallocPD.DecodeRequest([]byte{1, 0, 0, 0, 0, 0, 0, 1})
	_, rows["no magic"] = Hello.DecodeRequest(make([]byte, 8))
	_, rows["an unfinished name"] = OpenDevice.DecodeRequest(bytes.Repeat([]byte{'x'}, nameLen))
	_, rows["a name with a zero"] = OpenDevice.DecodeRequest(append([]byte("a\x00b"), make([]byte, nameLen-3)...))
	_, rows["more entries than there are"] = QueryGIDTable.DecodeGrant([]byte{2, 0, 0, 0, 0, 0, 0, 0}, shared)
	_, rows["too many entries"] = QueryGIDTable.DecodeGrant([]byte{0, 0, 0, 255, 0, 0, 0, 0}, shared)
	_, rows["a cancel for no reason"] = DecodeCancel(make([]byte, 8))
	_, rows["no memory"] = OpenDevice.DecodeGrant(make([]byte, 24), nil)
	_, rows["memory past the end"] = AllocMR.DecodeGrant(append(make([]byte, 8), 1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), shared)
	_, rows["memory that wraps"] = AllocMR.DecodeGrant(append(make([]byte, 8), 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255), shared)
	_, rows["no memory at a place"] = AllocMR.DecodeGrant(append(make([]byte, 8), 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), shared)
	for name, err := range rows {
		if !IsMalformed(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestJoinKinds: what programs and services of older releases say, and understand, has not changed.
func TestJoinKinds(t *testing.T) {
	for kind, state := range map[byte]ib.JoinState{
		1: ib.JoinStateFullMember, 2: ib.JoinStateSendOnlyFullMember, 4: ib.JoinStateNonMember, 8: ib.JoinStateSendOnlyNonMember,
		3: ib.JoinStateFullMember | ib.JoinStateSendOnlyFullMember, 15: ib.AllJoinStates,
	} {
		packet, err := JoinMulticast.EncodeRequest(1, &provider.JoinMulticastRequest{State: state})
		if body := packet[headerLen:]; err != nil || body[0] != kind {
			t.Errorf("state %v is kind %d, want %d: %v", state, body[0], kind, err)
		}
	}
}
