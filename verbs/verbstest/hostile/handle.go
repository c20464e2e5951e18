// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/verbstest/rig"
)

// Doorbells is the first doorbell index of these tests. It is larger than any index that their Contexts use.
const Doorbells = 5000

// handles contains a handle of each kind. The objects are created by provider commands, without package verbs.
type handles struct{ PD, mr, mw, dm, channel, CQ, srq, qp, ah, membership, events, id, xrcd, target, counters provider.Handle }

func NewHandles(s *rig.Station, p provider.Provider, number uint32) (h handles) {
	s.Helper()
	pd, err := provider.Do(p, provider.AllocPD, provider.None{})
	rig.Check(s, err)
	mr, err := provider.Do(p, provider.AllocMR, provider.AllocMRRequest{PD: pd.PD, Length: 1})
	rig.Check(s, err)
	mw, err := provider.Do(p, provider.AllocMW, provider.AllocMWRequest{PD: pd.PD, Type: verbs.MWType1})
	rig.Check(s, err)
	counters, err := provider.Do(p, provider.CreateCounters, provider.None{})
	rig.Check(s, err)
	dm, err := provider.Do(p, provider.AllocDM, provider.AllocDMRequest{Length: 64})
	rig.Check(s, err)
	channel, err := provider.Do(p, provider.CreateCompChannel, provider.None{})
	rig.Check(s, err)
	rig.Check(s, channel.Events.Close())
	cq, err := provider.Do(p, provider.CreateCQ, provider.CreateCQRequest{Entries: 8, EventID: uint64(Doorbells + number), Channel: channel.Channel})
	rig.Check(s, err)
	srq, err := provider.Do(p, provider.CreateSRQ, provider.CreateSRQRequest{PD: pd.PD, Attr: provider.SRQInitAttr{MaxWR: 8}, EventID: uint64(Doorbells+number) << 20})
	rig.Check(s, err)
	qp, err := provider.Do(p, provider.CreateQP, Request(pd.PD, cq.CQ, Doorbells+number))
	rig.Check(s, err)
	ah, err := provider.DoContext(rig.Guard(s), p, provider.CreateAH, provider.CreateAHRequest{PD: pd.PD, Attr: *s.Route(s.End.IPv4)})
	rig.Check(s, err)
	m, err := provider.Do(p, provider.JoinMulticast, provider.JoinMulticastRequest{Group: rig.GroupV4, State: ib.JoinStateSendOnlyFullMember})
	rig.Check(s, err)
	events, err := provider.Do(p, provider.CreateEventChannel, provider.None{})
	rig.Check(s, err)
	rig.Check(s, events.Events.Close())
	id, err := provider.Do(p, provider.CreateID, provider.CreateIDRequest{Channel: events.Channel, PortSpace: wire.PortSpaceUDP})
	rig.Check(s, err)
	domain, err := provider.Do(p, provider.OpenXRCD, provider.OpenXRCDRequest{})
	rig.Check(s, err)
	target, err := provider.Do(p, provider.CreateXRCTarget, provider.CreateXRCTargetRequest{XRCD: domain.XRCD, EventID: 1<<41 + uint64(number)})
	rig.Check(s, err)
	return handles{pd.PD, mr.MR, mw.MW, dm.DM, channel.Channel, cq.CQ, srq.SRQ, qp.QP, ah.AH, m.Membership, events.Channel, id.ID, domain.XRCD, target.QP, counters.Counters}
}

// Request returns a valid request for a queue pair.
func Request(pd, cq provider.Handle, index uint32) provider.CreateQPRequest {
	return provider.CreateQPRequest{
		PD: pd, Type: verbs.QPTypeUD, Cap: rig.DefaultCap(), SendCQ: cq, RecvCQ: cq,
		DoorbellIndex: index, CompletionToken: index, EventID: 1<<40 + uint64(index),
	}
}

// free destroys the objects that NewHandles created.
func (h handles) free(t testing.TB, p provider.Provider) {
	t.Helper()
	for _, err := range []error{
		provider.Exec(p, provider.DestroyQP, provider.DestroyQPRequest{QP: h.target}), provider.Exec(p, provider.CloseXRCD, provider.CloseXRCDRequest{XRCD: h.xrcd}),
		provider.Exec(p, provider.DestroyID, provider.DestroyIDRequest{ID: h.id}), provider.Exec(p, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: h.events}),
		provider.Exec(p, provider.LeaveMulticast, provider.LeaveMulticastRequest{Membership: h.membership}), provider.Exec(p, provider.DestroyAH, provider.DestroyAHRequest{AH: h.ah}),
		provider.Exec(p, provider.DestroyQP, provider.DestroyQPRequest{QP: h.qp}), provider.Exec(p, provider.DestroySRQ, provider.DestroySRQRequest{SRQ: h.srq}), provider.Exec(p, provider.DestroyCQ, provider.DestroyCQRequest{CQ: h.CQ}),
		provider.Exec(p, provider.DestroyCompChannel, provider.DestroyCompChannelRequest{Channel: h.channel}),
		provider.Exec(p, provider.DestroyCounters, provider.DestroyCountersRequest{Counters: h.counters}), provider.Exec(p, provider.FreeDM, provider.FreeDMRequest{DM: h.dm}), provider.Exec(p, provider.DeallocMW, provider.DeallocMWRequest{MW: h.mw}), provider.Exec(p, provider.DeregMR, provider.DeregMRRequest{MR: h.mr}), provider.Exec(p, provider.DeallocPD, provider.DeallocPDRequest{PD: h.PD}),
	} {
		rig.Check(t, err)
	}
}

// refuseHandles passes invalid handles to each command that has a handle: unknown ones, handles of closed objects, and
// handles of another session. Each command must return an error.
func refuseHandles(t *testing.T, w *rig.World) {
	p := w.A.Session
	good, closed := NewHandles(w.A, p, 0), NewHandles(w.A, p, 1)
	closed.free(t, p)
	rows := map[string]handles{"closed": closed, "another session's": foreign(w)}
	for _, h := range []provider.Handle{0, 0xBAD, 0xDEADBEEF, 1 << 31, math.MaxUint32} {
		rows[fmt.Sprintf("number %#x", uint32(h))] = handles{h, h, h, h, h, h, h, h, h, h, h, h, h, h, h}
	}
	for name, bad := range rows {
		t.Run(name, func(t *testing.T) { refuseAll(t, w, handleCommands(w.A, good, bad)) })
	}
	good.free(t, p) // fails if a refused command changed an object
}

// foreign returns handles of another session, on the same card if possible. Their numbers are higher than those of A's
// session.
func foreign(w *rig.World) (last handles) {
	w.A.Helper()
	owner, session := w.B, w.B.Session
	if w.Pair.Beside != nil {
		owner, session = w.A, rig.Judge(w.A, w.Pair.Beside())
		w.A.Cleanup(func() { rig.Check(w.A, session.Close()) })
	}
	for i := range uint32(20) {
		last = NewHandles(owner, session, 2+i)
	}
	return last
}

// handleCommands returns all commands that have a handle. Each command has one invalid handle.
func handleCommands(s *rig.Station, good, bad handles) []command {
	return slices.Concat(objectCommands(s, good, bad), xrcCommands(s.Session, good, bad), useCommands(s, bad), idCommands(s.Session, good, bad))
}

// objectCommands returns the commands that create, change and destroy objects.
func objectCommands(s *rig.Station, good, bad handles) []command {
	p := s.Session
	qp := func(pd, send, recv provider.Handle) error {
		r := Request(pd, send, Doorbells+100)
		r.RecvCQ = recv
		_, err := provider.Do(p, provider.CreateQP, r)
		return err
	}
	srq := func() error {
		r := Request(good.PD, good.CQ, Doorbells+100)
		if r.SRQ = bad.srq; r.SRQ == 0 { // 0 means that the queue pair has no SRQ
			return verbs.ErrInvalid
		}
		_, err := provider.Do(p, provider.CreateQP, r)
		return err
	}
	init := verbs.QPAttr{State: verbs.QPStateInit, Port: 1}
	return []command{
		{"DeallocPD", func() error { return provider.Exec(p, provider.DeallocPD, provider.DeallocPDRequest{PD: bad.PD}) }},
		{"AllocMR", func() error {
			_, err := provider.Do(p, provider.AllocMR, provider.AllocMRRequest{PD: bad.PD, Length: 1})
			return err
		}},
		{"RegMR", func() error {
			_, err := provider.Do(p, provider.RegMR, provider.RegMRRequest{PD: bad.PD, Memory: make([]byte, 1)})
			return err
		}},
		{"ReregMR", func() error {
			return provider.Exec(p, provider.ReregMR, provider.ReregMRRequest{MR: bad.mr, Flags: verbs.ReregChangeAccess})
		}},
		{"ReregMR, PD", func() error {
			return provider.Exec(p, provider.ReregMR, provider.ReregMRRequest{MR: good.mr, Flags: verbs.ReregChangePD, PD: bad.PD})
		}},
		{"DeregMR", func() error { return provider.Exec(p, provider.DeregMR, provider.DeregMRRequest{MR: bad.mr}) }},
		{"DeregMR, of a window", func() error { return provider.Exec(p, provider.DeregMR, provider.DeregMRRequest{MR: good.mw}) }},
		{"ReregMR, of a window", func() error {
			return provider.Exec(p, provider.ReregMR, provider.ReregMRRequest{MR: good.mw, Flags: verbs.ReregChangeAccess})
		}},
		{"AllocMW", func() error {
			_, err := provider.Do(p, provider.AllocMW, provider.AllocMWRequest{PD: bad.PD, Type: verbs.MWType2})
			return err
		}},
		{"AttachCounters, to", func() error {
			return provider.Exec(p, provider.AttachCounters, provider.AttachCountersRequest{Counters: good.counters, Of: bad.qp})
		}},
		{"AttachCounters, to a CQ", func() error {
			return provider.Exec(p, provider.AttachCounters, provider.AttachCountersRequest{Counters: good.counters, Of: bad.CQ, What: ib.CounterErrors})
		}},
		{"AttachCounters", func() error {
			return provider.Exec(p, provider.AttachCounters, provider.AttachCountersRequest{Counters: bad.counters, Of: good.qp})
		}},
		{"ReadCounters", func() error {
			_, err := provider.Do(p, provider.ReadCounters, provider.ReadCountersRequest{Counters: bad.counters})
			return err
		}},
		{"DestroyCounters", func() error {
			return provider.Exec(p, provider.DestroyCounters, provider.DestroyCountersRequest{Counters: bad.counters})
		}},
		{"AllocNullMR", func() error {
			_, err := provider.Do(p, provider.AllocNullMR, provider.AllocNullMRRequest{PD: bad.PD})
			return err
		}},
		{"AllocFastMR", func() error {
			_, err := provider.Do(p, provider.AllocFastMR, provider.AllocFastMRRequest{PD: bad.PD, Entries: 1})
			return err
		}},
		{"MapFMR", func() error { return provider.Exec(p, provider.MapFMR, provider.MapFMRRequest{MR: bad.mr}) }},
		{"MapFMR, of a region that is not fast", func() error { return provider.Exec(p, provider.MapFMR, provider.MapFMRRequest{MR: good.mr}) }},
		{"CheckMRStatus", func() error {
			_, err := provider.Do(p, provider.CheckMRStatus, provider.CheckMRStatusRequest{MR: bad.mr})
			return err
		}},
		{"CheckMRStatus, of a region without signatures", func() error {
			_, err := provider.Do(p, provider.CheckMRStatus, provider.CheckMRStatusRequest{MR: good.mr})
			return err
		}},
		{"UnmapFMR", func() error { return provider.Exec(p, provider.UnmapFMR, provider.UnmapFMRRequest{MR: bad.mr}) }},
		{"UnmapFMR, of a window", func() error { return provider.Exec(p, provider.UnmapFMR, provider.UnmapFMRRequest{MR: good.mw}) }},
		{"FreeDM", func() error { return provider.Exec(p, provider.FreeDM, provider.FreeDMRequest{DM: bad.dm}) }},
		{"RegDMMR, memory", func() error {
			_, err := provider.Do(p, provider.RegDMMR, provider.RegDMMRRequest{PD: good.PD, DM: bad.dm, Length: 1})
			return err
		}},
		{"RegDMMR, PD", func() error {
			_, err := provider.Do(p, provider.RegDMMR, provider.RegDMMRRequest{PD: bad.PD, DM: good.dm, Length: 1})
			return err
		}},
		{"DeallocMW", func() error { return provider.Exec(p, provider.DeallocMW, provider.DeallocMWRequest{MW: bad.mw}) }},
		{"DeallocMW, of a region", func() error { return provider.Exec(p, provider.DeallocMW, provider.DeallocMWRequest{MW: good.mr}) }},
		{"DestroyCompChannel", func() error {
			return provider.Exec(p, provider.DestroyCompChannel, provider.DestroyCompChannelRequest{Channel: bad.channel})
		}},
		{"ResizeCQ", func() error {
			_, err := provider.Do(p, provider.ResizeCQ, provider.ResizeCQRequest{CQ: bad.CQ, Entries: 8})
			return err
		}},
		{"ModifyCQ", func() error { return provider.Exec(p, provider.ModifyCQ, provider.ModifyCQRequest{CQ: bad.CQ}) }},
		{"CheckCQ", func() error { return provider.Exec(p, provider.CheckCQ, provider.CheckCQRequest{CQ: bad.CQ}) }},
		{"DestroyCQ", func() error { return provider.Exec(p, provider.DestroyCQ, provider.DestroyCQRequest{CQ: bad.CQ}) }},
		{"CreateQP, PD", func() error { return qp(bad.PD, good.CQ, good.CQ) }},
		{"CreateQP, send CQ", func() error { return qp(good.PD, bad.CQ, good.CQ) }},
		{"CreateQP, receive CQ", func() error { return qp(good.PD, good.CQ, bad.CQ) }},
		{"CreateQP, SRQ", srq},
		{"CreateSRQ", func() error {
			_, err := provider.Do(p, provider.CreateSRQ, provider.CreateSRQRequest{PD: bad.PD, Attr: provider.SRQInitAttr{MaxWR: 1}})
			return err
		}},
		{"ModifySRQ", func() error {
			_, err := provider.Do(p, provider.ModifySRQ, provider.ModifySRQRequest{SRQ: bad.srq, Attr: verbs.SRQAttr{MaxWR: 1}, Mask: verbs.SRQMaxWR})
			return err
		}},
		{"ModifySRQ, nothing", func() error {
			_, err := provider.Do(p, provider.ModifySRQ, provider.ModifySRQRequest{SRQ: bad.srq})
			return err
		}},
		{"QuerySRQ", func() error {
			_, err := provider.Do(p, provider.QuerySRQ, provider.QuerySRQRequest{SRQ: bad.srq})
			return err
		}},
		{"DestroySRQ", func() error { return provider.Exec(p, provider.DestroySRQ, provider.DestroySRQRequest{SRQ: bad.srq}) }},
		{"ModifyQP", func() error {
			_, err := provider.Do(p, provider.ModifyQP, provider.ModifyQPRequest{QP: bad.qp, Attr: init, Mask: rig.InitMask})
			return err
		}},
		{"ModifyQP, nothing", func() error {
			_, err := provider.Do(p, provider.ModifyQP, provider.ModifyQPRequest{QP: bad.qp})
			return err
		}},
		{"QueryQP", func() error {
			_, err := provider.Do(p, provider.QueryQP, provider.QueryQPRequest{QP: bad.qp})
			return err
		}},
		{"DestroyQP", func() error { return provider.Exec(p, provider.DestroyQP, provider.DestroyQPRequest{QP: bad.qp}) }},
	}
}

// useCommands returns the commands of address handles and multicast groups.
func useCommands(s *rig.Station, bad handles) []command {
	p := s.Session
	group := provider.McastRequest{QP: bad.qp, MGID: rig.GID(rig.GroupV4)}
	return []command{
		{"CreateAH", func() error {
			_, err := provider.DoContext(rig.Guard(s), p, provider.CreateAH, provider.CreateAHRequest{PD: bad.PD, Attr: *s.Route(s.End.IPv4)})
			return err
		}},
		{"ModifyAH", func() error {
			return provider.ExecContext(rig.Guard(s), p, provider.ModifyAH, provider.ModifyAHRequest{AH: bad.ah, Attr: *s.Route(s.End.IPv4)})
		}},
		{"QueryAH", func() error {
			_, err := provider.Do(p, provider.QueryAH, provider.QueryAHRequest{AH: bad.ah})
			return err
		}},
		{"DestroyAH", func() error { return provider.Exec(p, provider.DestroyAH, provider.DestroyAHRequest{AH: bad.ah}) }},
		{"AttachMcast", func() error { return provider.Exec(p, provider.AttachMcast, group) }},
		{"DetachMcast", func() error { return provider.Exec(p, provider.DetachMcast, group) }},
		{"LeaveMulticast", func() error {
			return provider.Exec(p, provider.LeaveMulticast, provider.LeaveMulticastRequest{Membership: bad.membership})
		}},
	}
}
