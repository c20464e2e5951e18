package verbstest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// doorbells are places in the doorbell that no Context of these tests comes to.
const doorbells = 5000

// handles are one of each kind, made past the API.
type handles struct{ pd, mr, mw, channel, cq, srq, qp, ah, membership, events, id provider.Handle }

func (s *station) newHandles(p provider.Provider, number uint32) (h handles) {
	s.Helper()
	pd, err := p.AllocPD()
	check(s, err)
	mr, err := p.AllocMR(provider.AllocMRRequest{PD: pd.PD, Length: 1})
	check(s, err)
	mw, err := p.AllocMW(provider.AllocMWRequest{PD: pd.PD, Type: verbs.MWType1})
	check(s, err)
	channel, err := p.CreateCompChannel()
	check(s, err)
	check(s, channel.Events.Close())
	cq, err := p.CreateCQ(provider.CreateCQRequest{Entries: 8, EventID: uint64(doorbells + number), Channel: channel.Channel})
	check(s, err)
	srq, err := p.CreateSRQ(provider.CreateSRQRequest{PD: pd.PD, Attr: verbs.SRQInitAttr{MaxWR: 8}, EventID: uint64(doorbells+number) << 20})
	check(s, err)
	qp, err := p.CreateQP(request(pd.PD, cq.CQ, doorbells+number))
	check(s, err)
	ah, err := p.CreateAH(guard(s), provider.CreateAHRequest{PD: pd.PD, Attr: *s.route(s.end.IPv4)})
	check(s, err)
	m, err := p.JoinMulticast(provider.JoinMulticastRequest{Group: groupV4, Flags: verbs.JoinSendOnlyFullMember})
	check(s, err)
	events, err := p.CreateEventChannel()
	check(s, err)
	check(s, events.Events.Close())
	id, err := p.CreateID(provider.CreateIDRequest{Channel: events.Channel, PortSpace: verbs.PortSpaceUDP})
	check(s, err)
	return handles{pd.PD, mr.MR, mw.MW, channel.Channel, cq.CQ, srq.SRQ, qp.QP, ah.AH, m.Membership, events.Channel, id.ID}
}

// request is one for a queue pair, with nothing wrong.
func request(pd, cq provider.Handle, index uint32) provider.CreateQPRequest {
	return provider.CreateQPRequest{
		PD: pd, Type: verbs.QPTypeUD, Cap: defaultCap(), SendCQ: cq, RecvCQ: cq,
		DoorbellIndex: index, CompletionToken: index, EventID: 1<<40 + uint64(index),
	}
}

// free gives back what newHandles made.
func (h handles) free(t testing.TB, p provider.Provider) {
	t.Helper()
	for _, err := range []error{
		p.DestroyID(provider.DestroyIDRequest{ID: h.id}), p.DestroyEventChannel(provider.DestroyEventChannelRequest{Channel: h.events}),
		p.LeaveMulticast(provider.LeaveMulticastRequest{Membership: h.membership}), p.DestroyAH(provider.DestroyAHRequest{AH: h.ah}),
		p.DestroyQP(provider.DestroyQPRequest{QP: h.qp}), p.DestroySRQ(provider.DestroySRQRequest{SRQ: h.srq}), p.DestroyCQ(provider.DestroyCQRequest{CQ: h.cq}),
		p.DestroyCompChannel(provider.DestroyCompChannelRequest{Channel: h.channel}),
		p.DeallocMW(provider.DeallocMWRequest{MW: h.mw}), p.DeregMR(provider.DeregMRRequest{MR: h.mr}), p.DeallocPD(provider.DeallocPDRequest{PD: h.pd}),
	} {
		check(t, err)
	}
}

// Every command that takes a handle refuses one that was never given, one of what is closed, and
// one of another session.
func refuseHandles(t *testing.T, w *world) {
	p := w.a.session
	good, closed := w.a.newHandles(p, 0), w.a.newHandles(p, 1)
	closed.free(t, p)
	rows := map[string]handles{"closed": closed, "another session's": w.foreign()}
	for _, h := range []provider.Handle{0, 0xBAD, 0xDEADBEEF, 1 << 31, math.MaxUint32} {
		rows[fmt.Sprintf("number %#x", uint32(h))] = handles{h, h, h, h, h, h, h, h, h, h, h}
	}
	for name, bad := range rows {
		t.Run(name, func(t *testing.T) { refuseAll(t, w, handleCommands(w.a, good, bad)) })
	}
	good.free(t, p) // none of it was hit
}

// foreign is what another session has, on the same card if there can be one: further along in
// its tables than A's session is in its own.
func (w *world) foreign() (last handles) {
	w.a.Helper()
	owner, session := w.b, w.b.session
	if w.pair.Beside != nil {
		owner, session = w.a, judge(w.a, w.pair.Beside())
		w.a.Cleanup(func() { check(w.a, session.Close()) })
	}
	for i := range uint32(20) {
		last = owner.newHandles(session, 2+i)
	}
	return last
}

// handleCommands are all that take a handle, with one bad one each.
func handleCommands(s *station, good, bad handles) []command {
	return slices.Concat(objectCommands(s, good, bad), useCommands(s, bad), idCommands(s.session, good, bad))
}

// objectCommands make, change and free objects.
func objectCommands(s *station, good, bad handles) []command {
	p := s.session
	qp := func(pd, send, recv provider.Handle) error {
		r := request(pd, send, doorbells+100)
		r.RecvCQ = recv
		_, err := p.CreateQP(r)
		return err
	}
	srq := func() error {
		r := request(good.pd, good.cq, doorbells+100)
		if r.SRQ = bad.srq; r.SRQ == 0 { // means none
			return verbs.ErrInvalid
		}
		_, err := p.CreateQP(r)
		return err
	}
	init := verbs.QPAttr{State: verbs.QPStateInit, Port: 1}
	return []command{
		{"DeallocPD", func() error { return p.DeallocPD(provider.DeallocPDRequest{PD: bad.pd}) }},
		{"AllocMR", func() error { _, err := p.AllocMR(provider.AllocMRRequest{PD: bad.pd, Length: 1}); return err }},
		{"RegMR", func() error {
			_, err := p.RegMR(provider.RegMRRequest{PD: bad.pd, Memory: make([]byte, 1)})
			return err
		}},
		{"ReregMR", func() error {
			return p.ReregMR(provider.ReregMRRequest{MR: bad.mr, Flags: verbs.ReregChangeAccess})
		}},
		{"ReregMR, PD", func() error {
			return p.ReregMR(provider.ReregMRRequest{MR: good.mr, Flags: verbs.ReregChangePD, PD: bad.pd})
		}},
		{"DeregMR", func() error { return p.DeregMR(provider.DeregMRRequest{MR: bad.mr}) }},
		{"DeregMR, of a window", func() error { return p.DeregMR(provider.DeregMRRequest{MR: good.mw}) }},
		{"ReregMR, of a window", func() error {
			return p.ReregMR(provider.ReregMRRequest{MR: good.mw, Flags: verbs.ReregChangeAccess})
		}},
		{"AllocMW", func() error {
			_, err := p.AllocMW(provider.AllocMWRequest{PD: bad.pd, Type: verbs.MWType2})
			return err
		}},
		{"DeallocMW", func() error { return p.DeallocMW(provider.DeallocMWRequest{MW: bad.mw}) }},
		{"DeallocMW, of a region", func() error { return p.DeallocMW(provider.DeallocMWRequest{MW: good.mr}) }},
		{"DestroyCompChannel", func() error {
			return p.DestroyCompChannel(provider.DestroyCompChannelRequest{Channel: bad.channel})
		}},
		{"ResizeCQ", func() error { _, err := p.ResizeCQ(provider.ResizeCQRequest{CQ: bad.cq, Entries: 8}); return err }},
		{"ModifyCQ", func() error { return p.ModifyCQ(provider.ModifyCQRequest{CQ: bad.cq}) }},
		{"CheckCQ", func() error { return p.CheckCQ(provider.CheckCQRequest{CQ: bad.cq}) }},
		{"DestroyCQ", func() error { return p.DestroyCQ(provider.DestroyCQRequest{CQ: bad.cq}) }},
		{"CreateQP, PD", func() error { return qp(bad.pd, good.cq, good.cq) }},
		{"CreateQP, send CQ", func() error { return qp(good.pd, bad.cq, good.cq) }},
		{"CreateQP, receive CQ", func() error { return qp(good.pd, good.cq, bad.cq) }},
		{"CreateQP, SRQ", srq},
		{"CreateSRQ", func() error {
			_, err := p.CreateSRQ(provider.CreateSRQRequest{PD: bad.pd, Attr: verbs.SRQInitAttr{MaxWR: 1}})
			return err
		}},
		{"ModifySRQ", func() error {
			_, err := p.ModifySRQ(provider.ModifySRQRequest{SRQ: bad.srq, Attr: verbs.SRQAttr{MaxWR: 1}, Mask: verbs.SRQMaxWR})
			return err
		}},
		{"ModifySRQ, nothing", func() error { _, err := p.ModifySRQ(provider.ModifySRQRequest{SRQ: bad.srq}); return err }},
		{"QuerySRQ", func() error { _, err := p.QuerySRQ(provider.QuerySRQRequest{SRQ: bad.srq}); return err }},
		{"DestroySRQ", func() error { return p.DestroySRQ(provider.DestroySRQRequest{SRQ: bad.srq}) }},
		{"ModifyQP", func() error {
			_, err := p.ModifyQP(provider.ModifyQPRequest{QP: bad.qp, Attr: init, Mask: initMask})
			return err
		}},
		{"ModifyQP, nothing", func() error { _, err := p.ModifyQP(provider.ModifyQPRequest{QP: bad.qp}); return err }},
		{"QueryQP", func() error { _, err := p.QueryQP(provider.QueryQPRequest{QP: bad.qp}); return err }},
		{"DestroyQP", func() error { return p.DestroyQP(provider.DestroyQPRequest{QP: bad.qp}) }},
	}
}

// useCommands are of addresses and groups.
func useCommands(s *station, bad handles) []command {
	p := s.session
	group := provider.McastRequest{QP: bad.qp, MGID: gid(groupV4)}
	return []command{
		{"CreateAH", func() error {
			_, err := p.CreateAH(guard(s), provider.CreateAHRequest{PD: bad.pd, Attr: *s.route(s.end.IPv4)})
			return err
		}},
		{"ModifyAH", func() error {
			return p.ModifyAH(guard(s), provider.ModifyAHRequest{AH: bad.ah, Attr: *s.route(s.end.IPv4)})
		}},
		{"QueryAH", func() error { _, err := p.QueryAH(provider.QueryAHRequest{AH: bad.ah}); return err }},
		{"DestroyAH", func() error { return p.DestroyAH(provider.DestroyAHRequest{AH: bad.ah}) }},
		{"AttachMcast", func() error { return p.AttachMcast(group) }},
		{"DetachMcast", func() error { return p.DetachMcast(group) }},
		{"LeaveMulticast", func() error { return p.LeaveMulticast(provider.LeaveMulticastRequest{Membership: bad.membership}) }},
	}
}
