// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/lab/labtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
	"github.com/roced/roced/verbs/provider"
)

func TestMain(m *testing.M) {
	if run := children[os.Getenv(childVariable)]; run != nil {
		run()
		os.Exit(0)
	}
	labtest.Main(m)
}

// waitTimeout limits every wait of these tests, so that a hang fails the test. No test measures time.
var waitTimeout = waittest.Limit

const (
	testQKey verbs.QKey = 0x11111111
	slotLen             = 2048 // of each station's memory, one slot per request
	depth               = 8
)

// address and gid parse constants.
func address(s string) netip.Addr { return netip.MustParseAddr(s) }

func gid(s string) verbs.GID { return wire.GIDFromAddr(address(s)) }

var (
	check, refused    = errtest.Check, errtest.Refused
	eventually, guard = waittest.Eventually, waittest.Guard
	often             = waittest.Often
)

// station is a card and one of each object on it.
type station struct {
	testing.TB
	device *Card
	ctx    *verbs.Context
	pd     *verbs.PD
	mr     *verbs.MR
	cq     *verbs.CQ // of sends and receives
	qp     *verbs.QP
}

// defaultCap returns the capacities of stations' queue pairs.
func defaultCap() verbs.QPCap {
	return verbs.QPCap{MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 4, MaxRecvSGE: 4, MaxInlineData: 64}
}

func newStation(t testing.TB, d *Card) *station {
	t.Helper()
	return newStationIn(t, d, d)
}

// newStationIn is newStation in a session of the card.
func newStationIn(t testing.TB, d *Card, session provider.Provider) *station {
	t.Helper()
	s := &station{TB: t, device: d}
	var err error
	s.ctx, err = verbs.Open(session)
	check(t, err)
	s.pd, err = s.ctx.AllocPD()
	check(t, err)
	s.mr, err = s.pd.AllocMR(64*slotLen, verbs.AccessLocalWrite)
	check(t, err)
	s.cq, err = s.ctx.CreateCQ(256)
	check(t, err)
	s.qp = s.newQP(defaultCap())
	check(t, s.qp.Activate(testQKey))
	return s
}

func (s *station) newQP(c verbs.QPCap) *verbs.QP {
	s.Helper()
	qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq, Cap: c})
	check(s, err)
	return qp
}

func (s *station) mac() wire.MAC {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	return s.device.port.Now().MAC
}

// slot returns the memory of a request.
func (s *station) slot(i int) []byte { return s.mr.Bytes()[i*slotLen:][:slotLen] }

func (s *station) piece(i, length int) verbs.SGE { return s.mr.SGE(i*slotLen, length) }

// ah creates a handle to an address, from the station's own of the same IP version.
func (s *station) ah(to string) *verbs.AH {
	s.Helper()
	ah, err := s.pd.CreateAH(context.Background(), s.route(to))
	check(s, err)
	return ah
}

func (s *station) route(to string) *verbs.AHAttr {
	s.Helper()
	dest := gid(to)
	gids, err := s.ctx.QueryGIDTable(1)
	check(s, err)
	for _, own := range gids {
		if own.GID.IsIPv4() == dest.IsIPv4() && own.GID.IsLinkLocal() == dest.IsLinkLocal() {
			return &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: dest, SGIDIndex: own.Index}}
		}
	}
	s.Fatalf("no own address to send to %s from: %v", to, gids)
	return nil
}

// send returns a request to the peer's queue pair, with data from the station's memory.
func (s *station) send(id uint64, ah *verbs.AH, peer *station, sges ...verbs.SGE) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.WRSend, ID: id, SGList: sges, Flags: verbs.SendSignaled, AH: ah, RemoteQPN: peer.qp.Number(), RemoteQKey: testQKey}
}

func (s *station) post(wrs ...verbs.SendWR) {
	s.Helper()
	check(s, s.qp.PostSend(wrs))
}

// receive posts receives of whole slots, with the slot numbers as ids.
func (s *station) receive(slots ...int) {
	s.Helper()
	for _, i := range slots {
		check(s, s.qp.PostRecv([]verbs.RecvWR{{ID: uint64(i), SGList: []verbs.SGE{s.piece(i, slotLen)}}}))
	}
}

// wait returns exactly n completions, in order.
func (s *station) wait(n int) []verbs.WC {
	s.Helper()
	wcs := make([]verbs.WC, 0, n)
	ctx := guard(s)
	for len(wcs) < n {
		got, err := s.cq.Wait(ctx, wcs[len(wcs):n])
		if err != nil {
			s.Fatalf("after %d of %d completions: %v; drops %v", len(wcs), n, err, s.drops())
		}
		wcs = wcs[:len(wcs)+got]
	}
	return wcs
}

// drops returns the card's non-zero drop counters.
func (s *station) drops() map[string]uint64 { return dropsOf(s.device) }

func dropsOf(d *Card) map[string]uint64 {
	m := map[string]uint64{}
	c := d.engine.Counters()
	for i, n := range c.Drops {
		if n != 0 {
			m[datapath.Drop(i).String()] = n
		}
	}
	return m
}

// hostCard is a host on an in-memory network, and its card.
type hostCard struct {
	*Card
	*memnet.Host
}

// Close closes the card, and with it the host.
func (h *hostCard) Close() error { return h.Card.Close() }

// Name returns the name of the card and the host.
func (h *hostCard) Name() string { return h.Card.Name() }

// addHost adds a host and its card.
func addHost(n *memnet.Network, name string, addresses []netip.Addr, options ...Option) (*hostCard, error) {
	host, err := n.AddHost(name, addresses...)
	if err != nil {
		return nil, err
	}
	card, err := New(host, options...)
	return &hostCard{card, host}, err
}

// newHost is addHost, and fails the test on an error.
func newHost(t testing.TB, n *memnet.Network, name string, addresses []netip.Addr, options ...Option) *hostCard {
	t.Helper()
	h, err := addHost(n, name, addresses, options...)
	check(t, err)
	return h
}

// newNetwork returns an in-memory network without hosts.
func newNetwork(t testing.TB, seed uint64) *memnet.Network {
	t.Helper()
	n := memnet.New(seed)
	t.Cleanup(func() { check(t, n.Close()) })
	return n
}

// wirePair is two stations at the ends of an in-memory network. Without workers they run only when the test calls run.
type wirePair struct{ a, b *station }

var (
	addressesA = []netip.Addr{address("10.0.0.1"), address("fd00::1"), address("fe80::1")}
	addressesB = []netip.Addr{address("10.0.0.2"), address("fd00::2"), address("fe80::2")}
)

func newWirePair(t testing.TB, options ...Option) *wirePair {
	t.Helper()
	a, b, err := OpenPair(addressesA, addressesB, options...)
	check(t, err)
	t.Cleanup(func() { check(t, errors.Join(a.Close(), b.Close())) })
	return &wirePair{newStation(t, a), newStation(t, b)}
}

// newStillPair returns a pair without workers.
func newStillPair(t testing.TB) *wirePair { return newWirePair(t, WithoutWorker()) }

// run runs both devices until no more packets move.
func (w *wirePair) run() {
	for quiet := 0; quiet < 3; quiet++ {
		before := w.moved()
		w.a.device.Progress()
		w.b.device.Progress()
		if w.moved() != before {
			quiet = 0
		}
	}
}

func (w *wirePair) moved() (sum uint64) {
	for _, s := range []*station{w.a, w.b} {
		c := s.device.engine.Counters()
		sum += c.Sent + c.Received
	}
	return sum
}

// completions returns the completions of a station without a worker.
func (s *station) completions() []verbs.WC {
	s.Helper()
	return completionsOf(s, s.cq)
}

func completionsOf(t testing.TB, cq *verbs.CQ) []verbs.WC {
	t.Helper()
	var all []verbs.WC
	for {
		var wcs [16]verbs.WC
		n, err := cq.Poll(wcs[:])
		check(t, err)
		if all = append(all, wcs[:n]...); n == 0 {
			return all
		}
	}
}

// expect compares completions by id and status.
func expect(t testing.TB, got []verbs.WC, want ...outcome) {
	t.Helper()
	bad := len(got) != len(want)
	for i := 0; !bad && i < len(got); i++ {
		bad = got[i].ID != want[i].id || got[i].Status != want[i].status
	}
	if bad {
		t.Errorf("completions %+v, want %+v", got, want)
	}
}

type outcome struct {
	id     uint64
	status verbs.WCStatus
}

func ok(id uint64) outcome { return outcome{id, verbs.WCSuccess} }

func flushed(id uint64) outcome { return outcome{id, verbs.WCWRFlushErr} }

// quietGoroutines waits until there are no more goroutines than before.
func quietGoroutines(t testing.TB, before int) {
	t.Helper()
	eventually(t, "the end of goroutines", func() bool { return runtime.NumGoroutine() <= before })
}
