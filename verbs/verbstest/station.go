package verbstest

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

const (
	testQKey verbs.QKey = 0x11111111
	slots               = 64   // of each station's memory, a slot a request
	slotLen             = 2048 // bytes
	depth               = 8    // of the station's queues
)

// station is a session, and one of each object in it.
type station struct {
	testing.TB
	end     End
	session provider.Provider // the end's, judged
	ctx     *verbs.Context
	pd      *verbs.PD
	mr      *verbs.MR
	cq      *verbs.CQ  // of sends and receives
	srq     *verbs.SRQ // that the queue pair does not use
	qp      *verbs.QP

	dropped map[string]uint64 // before the test
}

// defaultCap is what stations' queue pairs have unless a test wants another.
func defaultCap() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}
}

func newStation(t testing.TB, end End) *station {
	t.Helper()
	s := &station{TB: t, end: end, session: judge(t, end.Provider)}
	var err error
	s.ctx, err = verbs.Open(s.session)
	check(t, err)
	t.Cleanup(func() { check(t, s.ctx.Close()) })
	s.pd, err = s.ctx.AllocPD()
	check(t, err)
	s.mr, err = s.pd.AllocMR(slots*slotLen, verbs.AccessLocalWrite)
	check(t, err)
	s.cq, err = s.ctx.CreateCQ(256)
	check(t, err)
	s.srq, err = s.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: depth, MaxSGE: 4})
	check(t, err)
	s.qp = s.active(defaultCap())
	return s
}

// newQP makes a queue pair in RESET.
func (s *station) newQP(c verbs.QPCap) *verbs.QP {
	s.Helper()
	return s.newQPWith(verbs.QPInitAttr{SendCQ: s.cq, RecvCQ: s.cq, Cap: c})
}

func (s *station) newQPWith(init verbs.QPInitAttr) *verbs.QP {
	s.Helper()
	if init.Type == 0 {
		init.Type = verbs.QPTypeUD
	}
	qp, err := s.pd.CreateQP(&init)
	check(s, err)
	return qp
}

// active makes a queue pair in RTS.
func (s *station) active(c verbs.QPCap) *verbs.QP {
	s.Helper()
	qp := s.newQP(c)
	check(s, qp.Activate(testQKey))
	return qp
}

func (s *station) newCQ(entries int) *verbs.CQ {
	s.Helper()
	cq, err := s.ctx.CreateCQ(entries)
	check(s, err)
	return cq
}

// slot is the memory of a request.
func (s *station) slot(i int) []byte { return s.mr.Bytes()[i*slotLen:][:slotLen] }

func (s *station) piece(i, length int) verbs.SGE { return s.mr.SGE(i*slotLen, length) }

// ah makes a handle to an address, from the station's own of the same kind.
func (s *station) ah(to netip.Addr) *verbs.AH {
	s.Helper()
	ah, err := s.pd.CreateAH(guard(s), s.route(to))
	check(s, err)
	return ah
}

func (s *station) route(to netip.Addr) *verbs.AHAttr {
	s.Helper()
	own := s.end.IPv6
	switch {
	case to.Is4():
		own = s.end.IPv4
	case to.IsLinkLocalUnicast():
		own = s.end.LinkLocal
	}
	return &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: gid(to), SGIDIndex: s.line(own)}}
}

// line is where in the GID table an own address is.
func (s *station) line(own netip.Addr) int {
	s.Helper()
	gids, err := s.ctx.QueryGIDTable(1)
	check(s, err)
	for _, entry := range gids {
		if entry.GID == gid(own) {
			return entry.Index
		}
	}
	s.Fatalf("%v is not in the GID table: %v", own, gids)
	return 0
}

// send is a request for the peer's queue pair, with data from the station's memory.
func (s *station) send(id uint64, ah *verbs.AH, peer *verbs.QP, sges ...verbs.SGE) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRSend, ID: id, SGList: sges, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: peer.Number(), RemoteQKey: testQKey}
}

func (s *station) post(wrs ...verbs.SendWR) {
	s.Helper()
	check(s, s.qp.PostSend(wrs))
}

// receive posts receives of whole slots, numbered as the slots are.
func (s *station) receive(slots ...int) {
	s.Helper()
	for _, i := range slots {
		s.receiveOn(s.qp, i)
	}
}

func (s *station) receiveOn(qp *verbs.QP, slot int) {
	s.Helper()
	check(s, qp.PostRecv([]verbs.RecvWR{{ID: uint64(slot), SGList: []verbs.SGE{s.piece(slot, slotLen)}}}))
}

// wait gives exactly n completions, in the order in which they came.
func (s *station) wait(n int) []verbs.WC {
	s.Helper()
	return s.waitOn(s.cq, n)
}

func (s *station) waitOn(cq *verbs.CQ, n int) []verbs.WC {
	s.Helper()
	wcs := make([]verbs.WC, 0, n)
	ctx := guard(s)
	for len(wcs) < n {
		got, err := cq.Wait(ctx, wcs[len(wcs):n])
		if err != nil {
			s.Fatalf("after %d of %d completions: %v; drops %v", len(wcs), n, err, s.drops())
		}
		wcs = wcs[:len(wcs)+got]
	}
	return wcs
}

// expect waits for these completions, and gives them.
func (s *station) expect(want ...outcome) []verbs.WC {
	s.Helper()
	got := s.wait(len(want))
	same(s, got, want...)
	return got
}

// drained waits until the card has taken all that was posted to a queue pair. Completions may come
// a moment later.
func drained(t testing.TB, qp *verbs.QP) {
	t.Helper()
	check(t, qp.Drain(guard(t)))
}

// received splits what is in a slot, by its completion.
func (s *station) received(wc verbs.WC) (verbs.GRH, string) {
	grh, payload := wc.Payload(s.slot(int(wc.ID)))
	return grh, string(payload)
}
