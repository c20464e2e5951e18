// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/kernel"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// whole is a client that has one object of each kind.
type whole struct {
	*raw
	pd, mr, mw, fast, dm, spareDM, channel, cq, srq, qp, ah, membership provider.Handle
	xrcd, unused                                                        provider.Handle
	counters, spareCounters                                             provider.Handle
	target                                                              verbs.QPN
	mgid                                                                verbs.GID
	wholeIDs
}

func (d *daemon) whole(t testing.TB) *whole {
	t.Helper()
	w := &whole{raw: d.opened(t)}
	pd, _ := ask(w.raw, proto.AllocPD, &proto.None{})
	w.pd = pd.PD
	mr, _ := ask(w.raw, proto.AllocMR, &provider.AllocMRRequest{PD: w.pd, Length: 1 << 16, Access: verbs.AccessLocalWrite})
	channel, ends := ask(w.raw, proto.CreateCompChannel, &proto.None{})
	t.Cleanup(func() { proto.CloseAll(ends) })
	cq, _ := ask(w.raw, proto.CreateCQ, &provider.CreateCQRequest{Entries: 64, EventID: 1, Channel: channel.Channel})
	srq, _ := ask(w.raw, proto.CreateSRQ, &provider.CreateSRQRequest{PD: w.pd, Attr: provider.SRQInitAttr{MaxWR: 16, MaxSGE: 1}, EventID: 2})
	w.mr, w.channel, w.cq, w.srq = mr.MR, channel.Channel, cq.CQ, srq.SRQ
	qp, _ := ask(w.raw, proto.CreateQP, &provider.CreateQPRequest{
		PD: w.pd, Type: verbs.QPTypeUD, Cap: verbs.QPCap{MaxSendWR: 16, MaxSendSGE: 1}, SendCQ: w.cq, RecvCQ: w.cq, SRQ: w.srq, EventID: 3,
	})
	ask(w.raw, proto.ModifyQP, w.init(qp.QP))
	ah, _ := ask(w.raw, proto.CreateAH, w.aim(w.pd))
	joined, _ := ask(w.raw, proto.JoinMulticast, &provider.JoinMulticastRequest{Group: netip.MustParseAddr("239.1.2.3"), State: ib.JoinStateFullMember})
	w.qp, w.ah, w.membership, w.mgid = qp.QP, ah.AH, joined.Membership, joined.MGID
	ask(w.raw, proto.AttachMcast, &provider.McastRequest{QP: w.qp, MGID: w.mgid})
	window, _ := ask(w.raw, proto.AllocMW, &provider.AllocMWRequest{PD: w.pd, Type: verbs.MWType2})
	fast, _ := ask(w.raw, proto.AllocFastMR, &provider.AllocFastMRRequest{PD: w.pd, Entries: 2, Type: kernel.MRTypeIntegrity})
	w.mw, w.fast = window.MW, fast.MR
	device, _ := ask(w.raw, proto.AllocDM, &provider.AllocDMRequest{Length: 64})
	spare, _ := ask(w.raw, proto.AllocDM, &provider.AllocDMRequest{Length: 64})
	w.dm, w.spareDM = device.DM, spare.DM
	counters, _ := ask(w.raw, proto.CreateCounters, &proto.None{})
	spareCounters, _ := ask(w.raw, proto.CreateCounters, &proto.None{})
	w.counters, w.spareCounters = counters.Counters, spareCounters.Counters
	w.asyncEvents(spareEvents)
	mapOwn(t, w.shareMemory(), ownPlace, ownSize)
	w.connect()
	w.xrc()
	w.wholeIDs = w.ids(t)
	w.pass(memoryFile(t, pageSize).fd)
	return w
}

// spareEvents is a range of which events go to a descriptor; no object has an EventID there.
var spareEvents = proto.EventRange{First: 1 << 50, Last: 1 << 51}

// connect makes a queue pair that has a peer.
func (w *whole) connect() {
	qp, _ := ask(w.raw, proto.CreateQP, &provider.CreateQPRequest{
		PD: w.pd, Type: verbs.QPTypeRC, Cap: verbs.QPCap{MaxSendWR: 16, MaxSendSGE: 1}, SendCQ: w.cq, RecvCQ: w.cq, DoorbellIndex: 2, EventID: 7,
	})
	attr := verbs.QPAttr{State: verbs.QPStateInit, Port: 1, PathMTU: verbs.MTU1024, DestQPN: 5, AHAttr: w.aim(w.pd).Attr}
	ask(w.raw, proto.ModifyQP, &provider.ModifyQPRequest{
		QP: qp.QP, Attr: attr, Mask: verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrAccessFlags,
	})
	attr.State = verbs.QPStateRTR
	ask(w.raw, proto.ModifyQP, &provider.ModifyQPRequest{
		QP: qp.QP, Attr: attr, Mask: verbs.QPAttrState | verbs.QPAttrAV | verbs.QPAttrPathMTU | verbs.QPAttrDestQPN | verbs.QPAttrRQPSN |
			verbs.QPAttrMaxDestRDAtomic | verbs.QPAttrMinRNRTimer,
	})
}

// xrc makes an XRC domain that is used, and one that is not.
func (w *whole) xrc() {
	used, _ := ask(w.raw, proto.OpenXRCD, &proto.OpenXRCDRequest{})
	unused, _ := ask(w.raw, proto.OpenXRCD, &proto.OpenXRCDRequest{})
	target, _ := ask(w.raw, proto.CreateXRCTarget, &provider.CreateXRCTargetRequest{XRCD: used.XRCD, EventID: 20})
	ask(w.raw, proto.CreateXRCSRQ, &provider.CreateXRCSRQRequest{PD: w.pd, XRCD: used.XRCD, CQ: w.cq, Attr: provider.SRQInitAttr{MaxWR: 16}, EventID: 21})
	w.xrcd, w.unused, w.target = used.XRCD, unused.XRCD, target.Number
}

func (w *whole) init(qp provider.Handle) *provider.ModifyQPRequest {
	return &provider.ModifyQPRequest{
		QP: qp, Attr: verbs.QPAttr{State: verbs.QPStateInit, Port: 1, QKey: testQKey},
		Mask: verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey,
	}
}

func (w *whole) aim(pd provider.Handle) *provider.CreateAHRequest {
	return &provider.CreateAHRequest{PD: pd, Attr: verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addressesB[0])}}}
}

// packets are requests, one of each command, by their codes. Each is a valid command.
type packets map[uint16][]byte

func put[Q, G any](p packets, t testing.TB, c proto.Command[Q, G], request *Q) {
	t.Helper()
	packet, err := c.EncodeRequest(uint32(c.Number)+100, request)
	check(t, err)
	p[c.Number] = packet
}

func (w *whole) packets() packets {
	p, t, none := packets{}, w.TB, &proto.None{}
	group := &provider.McastRequest{QP: w.qp, MGID: w.mgid}
	put(p, t, proto.QueryDevice, none)
	put(p, t, proto.QueryPort, &provider.QueryPortRequest{Port: 1})
	put(p, t, proto.QueryGIDTable, &provider.QueryGIDTableRequest{Port: 1})
	put(p, t, proto.QueryPKey, &provider.QueryPKeyRequest{Port: 1})
	put(p, t, proto.QueryRTValues, none)
	put(p, t, proto.Counters, none)
	put(p, t, proto.GetAsyncEvent, none)
	put(p, t, proto.OpenAsyncEvents, &proto.EventRange{First: 1 << 40, Last: 1 << 41})
	spare := spareEvents
	put(p, t, proto.CloseAsyncEvents, &spare)
	put(p, t, proto.OpenEveryAsyncEvent, none)
	put(p, t, proto.AllocPD, none)
	put(p, t, proto.AllocMR, &provider.AllocMRRequest{PD: w.pd, Length: 4 << 20})
	put(p, t, proto.ReregMR, &provider.ReregMRRequest{MR: w.mr, Flags: verbs.ReregChangeAccess})
	put(p, t, proto.DeregMR, &provider.DeregMRRequest{MR: w.mr})
	put(p, t, proto.ShareMemory, &proto.ShareMemoryRequest{Size: testSpace})
	put(p, t, proto.RegMR, &proto.RegMRRequest{PD: w.pd, Length: ownSize, Offset: ownPlace})
	put(p, t, proto.ReregMRMemory, &proto.ReregMRMemoryRequest{MR: w.mr, Flags: verbs.ReregChangeTranslation, Length: ownSize, Offset: ownPlace})
	put(p, t, proto.RegFileMR, &proto.RegMRRequest{PD: w.pd, Length: pageSize})
	put(p, t, proto.ReregFileMR, &proto.ReregMRMemoryRequest{MR: w.mr, Flags: verbs.ReregChangeTranslation, Length: pageSize})
	put(p, t, proto.CreateCounters, none)
	put(p, t, proto.AttachCounters, &provider.AttachCountersRequest{Counters: w.counters, Of: w.qp})
	put(p, t, proto.ReadQPCounters, &provider.ReadCountersRequest{Counters: w.counters})
	put(p, t, proto.DestroyCounters, &provider.DestroyCountersRequest{Counters: w.spareCounters})
	put(p, t, proto.AllocFastMR, &provider.AllocFastMRRequest{PD: w.pd, Entries: 2})
	put(p, t, proto.MapFMR, &provider.MapFMRRequest{MR: w.fast})
	put(p, t, proto.UnmapFMR, &provider.UnmapFMRRequest{MR: w.fast})
	put(p, t, proto.CheckMRStatus, &provider.CheckMRStatusRequest{MR: w.fast})
	put(p, t, proto.AllocCoherent, &provider.AllocCoherentRequest{Length: 1})
	put(p, t, proto.AllocNullMR, &provider.AllocNullMRRequest{PD: w.pd})
	put(p, t, proto.AllocDM, &provider.AllocDMRequest{Length: 64})
	put(p, t, proto.RegDMMR, &provider.RegDMMRRequest{PD: w.pd, DM: w.dm, Length: 64})
	put(p, t, proto.FreeDM, &provider.FreeDMRequest{DM: w.spareDM})
	put(p, t, proto.AllocMW, &provider.AllocMWRequest{PD: w.pd, Type: verbs.MWType1})
	put(p, t, proto.DeallocMW, &provider.DeallocMWRequest{MW: w.mw})
	put(p, t, proto.CreateCompChannel, none)
	put(p, t, proto.CreateCQ, &provider.CreateCQRequest{Entries: 1000, EventID: 4, Channel: w.channel})
	put(p, t, proto.ResizeCQ, &provider.ResizeCQRequest{CQ: w.cq, Entries: 1000})
	put(p, t, proto.ModifyCQ, &provider.ModifyCQRequest{CQ: w.cq, Count: 5, Period: 5})
	put(p, t, proto.CheckCQ, &provider.CheckCQRequest{CQ: w.cq})
	put(p, t, proto.CreateSRQ, &provider.CreateSRQRequest{PD: w.pd, Attr: provider.SRQInitAttr{MaxWR: 16, MaxSGE: 1}, EventID: 5})
	put(p, t, proto.ModifySRQ, &provider.ModifySRQRequest{SRQ: w.srq, Attr: verbs.SRQAttr{MaxWR: 64}, Mask: verbs.SRQMaxWR})
	put(p, t, proto.QuerySRQ, &provider.QuerySRQRequest{SRQ: w.srq})
	put(p, t, proto.CreateQP, &provider.CreateQPRequest{PD: w.pd, Type: verbs.QPTypeUD, SendCQ: w.cq, RecvCQ: w.cq, DoorbellIndex: 1, EventID: 6})
	put(p, t, proto.ModifyQP, &provider.ModifyQPRequest{QP: w.qp, Attr: verbs.QPAttr{State: verbs.QPStateErr}, Mask: verbs.QPAttrState})
	put(p, t, proto.QueryQP, &provider.QueryQPRequest{QP: w.qp})
	put(p, t, proto.PassFile, none)
	put(p, t, proto.OpenXRCD, &proto.OpenXRCDRequest{})
	put(p, t, proto.CloseXRCD, &provider.CloseXRCDRequest{XRCD: w.unused})
	put(p, t, proto.CreateXRCSRQ, &provider.CreateXRCSRQRequest{PD: w.pd, XRCD: w.xrcd, CQ: w.cq, Attr: provider.SRQInitAttr{MaxWR: 16}, EventID: 22})
	put(p, t, proto.CreateXRCTarget, &provider.CreateXRCTargetRequest{XRCD: w.xrcd, EventID: 23})
	put(p, t, proto.OpenQP, &provider.OpenQPRequest{XRCD: w.xrcd, Number: w.target, EventID: 24})
	put(p, t, proto.CreateAH, w.aim(w.pd))
	put(p, t, proto.ModifyAH, &provider.ModifyAHRequest{AH: w.ah, Attr: w.aim(w.pd).Attr})
	put(p, t, proto.QueryAH, &provider.QueryAHRequest{AH: w.ah})
	put(p, t, proto.DestroyAH, &provider.DestroyAHRequest{AH: w.ah})
	put(p, t, proto.AttachMcast, group)
	put(p, t, proto.DetachMcast, group)
	put(p, t, proto.JoinMulticast, &provider.JoinMulticastRequest{Group: netip.MustParseAddr("239.1.2.4"), State: ib.JoinStateFullMember})
	put(p, t, proto.LeaveMulticast, &provider.LeaveMulticastRequest{Membership: w.membership})
	// These are EBUSY here: others use the object.
	put(p, t, proto.DeallocPD, &provider.DeallocPDRequest{PD: w.pd})
	put(p, t, proto.DestroyCompChannel, &provider.DestroyCompChannelRequest{Channel: w.channel})
	put(p, t, proto.DestroyCQ, &provider.DestroyCQRequest{CQ: w.cq})
	put(p, t, proto.DestroySRQ, &provider.DestroySRQRequest{SRQ: w.srq})
	put(p, t, proto.DestroyQP, &provider.DestroyQPRequest{QP: w.qp})
	put(p, t, proto.Close, none)
	w.idPackets(p)
	return p
}

// Registrations of a client's own memory.
const ownPlace, ownSize = 1 << 46, 4 << 20

// refusedHere are the commands whose object others use, one that is about connections, one that comes once, and one that
// needs a list in the session's memory.
var refusedHere = []uint16{
	proto.DeallocPD.Number, proto.DestroyCompChannel.Number, proto.DestroyCQ.Number, proto.DestroySRQ.Number, proto.DestroyQP.Number,
	proto.DestroyEventChannel.Number, proto.NotifyID.Number, proto.ShareMemory.Number, proto.MapFMR.Number, proto.OpenEveryAsyncEvent.Number,
}

// TestDeathInEveryCommand: a client dies when it has given a command, of each kind, and has read no
// answer. All that it had is gone, and its neighbours notice nothing.
func TestDeathInEveryCommand(t *testing.T) {
	t.Parallel()
	r := newRig(t, anyone)
	stillWell := neighbours(t, r)
	before := r.a.usage()
	codes := []uint16{proto.Close.Number}
	for code := range commands {
		codes = append(codes, code)
	}
	for _, code := range codes {
		for _, times := range []int{1, 3} {
			w := r.a.whole(t)
			packet := w.packets()[code]
			if packet == nil {
				t.Fatalf("no request for command %d", code)
			}
			for range times {
				check(t, w.Send(packet))
			}
			check(t, w.socket.Close())
			eventually(t, "all of the client is gone", func() bool { return r.a.usage() == before })
		}
		stillWell()
	}
	r.a.alone(t, 1)
}

// TestEveryCommandIsCarriedOut, so that the test above covers every command.
func TestEveryCommandIsCarriedOut(t *testing.T) {
	r := newRig(t, anyone)
	for code := range commands {
		if code == proto.GetAsyncEvent.Number {
			continue // it waits
		}
		w := r.a.whole(t)
		check(t, w.Send(w.packets()[code]))
		m, ends, err := w.Receive()
		check(t, err)
		proto.CloseAll(ends)
		if m.Kind != proto.Reply && !slices.Contains(refusedHere, code) {
			cause, _ := proto.DecodeFailure(m.Body)
			t.Errorf("command %d: %v", code, cause)
		}
		check(t, w.socket.Close())
	}
}
