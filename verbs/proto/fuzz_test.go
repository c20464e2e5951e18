package proto

import (
	"bytes"
	"math"
	"testing"
)

// symmetric tries a body as the request and as the grant of a command: what is accepted is encoded as
// it was.
func symmetric[Q, G any](c Command[Q, G]) func(*testing.T, Message) {
	return func(t *testing.T, m Message) {
		if m.Code != c.Code {
			return
		}
		switch m.Kind {
		case Request:
			if r, err := c.DecodeRequest(m.Body); err == nil {
				packet, err := c.EncodeRequest(m.ID, &r)
				same(t, m, packet, err)
			}
		case Reply:
			if g, err := c.DecodeGrant(m.Body, shared); err == nil {
				packet, err := c.EncodeGrant(m.ID, &g, shared)
				same(t, m, packet, err)
			}
		}
	}
}

func same(t *testing.T, m Message, packet []byte, err error) {
	t.Helper()
	if err != nil || !bytes.Equal(packet[headerLen:], m.Body) {
		t.Errorf("%v: %x, was %x", err, packet, m.Body)
	}
}

// fuzzed are all commands.
var fuzzed = []func(*testing.T, Message){
	symmetric(Hello), symmetric(OpenDevice), symmetric(ListDevices), symmetric(Close),
	symmetric(QueryDevice), symmetric(QueryPort), symmetric(QueryGIDTable), symmetric(QueryPKey), symmetric(Counters), symmetric(GetAsyncEvent),
	symmetric(AllocPD), symmetric(DeallocPD), symmetric(AllocMR), symmetric(DeregMR), symmetric(CreateCQ), symmetric(DestroyCQ),
	symmetric(CreateQP), symmetric(ModifyQP), symmetric(QueryQP), symmetric(DestroyQP), symmetric(CreateAH), symmetric(DestroyAH),
	symmetric(QueryRTValues), symmetric(OpenAsyncEvents), symmetric(CloseAsyncEvents), symmetric(OpenEveryAsyncEvent), symmetric(ReregMR), symmetric(AllocMW), symmetric(DeallocMW), symmetric(AllocNullMR), symmetric(AllocFastMR), symmetric(AllocCoherent), symmetric(MapFMR), symmetric(UnmapFMR), symmetric(CheckMRStatus), symmetric(CreateCounters), symmetric(AttachCounters), symmetric(ReadQPCounters), symmetric(DestroyCounters), symmetric(AllocDM), symmetric(FreeDM), symmetric(RegDMMR), symmetric(ResizeCQ), symmetric(ModifyCQ), symmetric(CheckCQ), symmetric(CreateCompChannel), symmetric(DestroyCompChannel),
	symmetric(CreateSRQ), symmetric(ModifySRQ), symmetric(QuerySRQ), symmetric(DestroySRQ), symmetric(ModifyAH), symmetric(QueryAH),
	symmetric(ListClients), symmetric(ListObjects), symmetric(ListIDs), symmetric(ReadCounters), symmetric(LookDevice), symmetric(NextEvents), symmetric(StartCapture), symmetric(AddSocket), symmetric(RemoveSocket),
	symmetric(ShareMemory), symmetric(RegMR), symmetric(ReregMRMemory), symmetric(RegFileMR), symmetric(ReregFileMR),
	symmetric(PassFile), symmetric(OpenXRCD), symmetric(CloseXRCD), symmetric(CreateXRCSRQ), symmetric(CreateXRCTarget), symmetric(OpenQP),
	symmetric(AttachMcast), symmetric(DetachMcast), symmetric(JoinMulticast), symmetric(LeaveMulticast),
	symmetric(CreateEventChannel), symmetric(DestroyEventChannel), symmetric(GetCMEvent), symmetric(CreateID), symmetric(DestroyID),
	symmetric(MigrateID), symmetric(SetIDOption), symmetric(QueryID), symmetric(BindID), symmetric(FindRoute), symmetric(ResolveIDAddr),
	symmetric(ResolveIDRoute), symmetric(SetIDPath), symmetric(InitIDQPAttr), symmetric(ListenID), symmetric(ConnectID), symmetric(AcceptID), symmetric(RejectID),
	symmetric(DisconnectID), symmetric(NotifyID), symmetric(JoinID), symmetric(LeaveID),
}

// Whatever comes from the other side, either way, is refused or understood; what is understood is
// written as it was read.
func FuzzMessage(f *testing.F) {
	if len(fuzzed) != len(all) {
		f.Fatalf("%d commands are fuzzed, there are %d", len(fuzzed), len(all))
	}
	for _, d := range all {
		for kind, fields := range map[Kind][]field{Request: d.request, Reply: d.grant} {
			s := structure{fields: fields}
			f.Add(append([]byte{byte(d.code), byte(d.code >> 8), byte(kind), 0, 1, 0, 0, 0}, make([]byte, s.size())...))
		}
	}
	for _, seed := range memorySeeds(f) {
		f.Add(seed)
	}
	f.Add(EncodeCancel(1, Canceled))
	f.Add(EncodeFailure(Ended, 0, 0, ErrMalformed))
	f.Fuzz(func(t *testing.T, packet []byte) {
		m, err := Parse(packet)
		if err != nil {
			return
		}
		switch m.Kind {
		case Cancel:
			if reason, err := DecodeCancel(m.Body); err == nil {
				same(t, m, EncodeCancel(m.ID, reason), nil)
			}
		case Failure, Ended:
			if cause, err := DecodeFailure(m.Body); err == nil && cause.Error() == "" && len(m.Body) > headerLen+32 {
				t.Errorf("no text in %x", m.Body)
			}
		default:
			for _, try := range fuzzed {
				try(t, m)
			}
		}
	})
}

// memorySeeds are requests for parts of a process file, at its edges and beyond.
func memorySeeds(f *testing.F) (seeds [][]byte) {
	for _, offset := range []uint64{0, 4095, MaxProcessFile - 1, MaxProcessFile, math.MaxUint64} {
		for _, length := range []int{0, 1, 1 << 30, math.MaxInt64, -1, math.MinInt64} {
			reg, err := RegMR.EncodeRequest(1, &RegMRRequest{PD: 1, Access: 7, Length: length, IOVA: offset, Offset: offset})
			if err != nil {
				f.Fatal(err)
			}
			rereg, err := ReregMRMemory.EncodeRequest(1, &ReregMRMemoryRequest{MR: 1, Flags: 7, PD: 1, Length: length, Offset: offset})
			if err != nil {
				f.Fatal(err)
			}
			seeds = append(seeds, reg, rereg)
		}
	}
	return seeds
}
