// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
)

// namedCounters returns a card's counters by name.
func namedCounters(t testing.TB, d *Card) map[string]uint64 {
	t.Helper()
	list, err := d.Counters()
	check(t, err)
	all := map[string]uint64{}
	for _, c := range list {
		all[c.Name] = c.Value
	}
	return all
}

// Over a network that marks packets, cards in mode mark notify each other, over IPv4 and IPv6; in the other modes
// packets are not markable, and without congestion control no notifications are sent.
func TestCongestionOverANetworkThatMarks(t *testing.T) {
	for _, row := range []struct {
		mode   Congestion
		marked bool
	}{{CongestionMark, true}, {CongestionAnswer, false}, {"", false}, {CongestionOff, false}} {
		for _, version := range []string{"10.0.0.", "fd00::"} {
			n := newNetwork(t, 1)
			hosts := []*hostCard{
				newHost(t, n, "a", addressesA, WithCongestion(row.mode)), newHost(t, n, "b", addressesB, WithCongestion(row.mode)),
			}
			a, b := newStation(t, hosts[0].Card), newStation(t, hosts[1].Card)
			qps := make([]*verbs.QP, 2)
			for i, s := range []*station{a, b} {
				qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeRC, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap()})
				check(t, err)
				qps[i] = qp
			}
			for i, s := range []*station{a, b} {
				check(t, qps[i].Connect(&verbs.QPAttr{
					AHAttr: *s.route(version + []string{"2", "1"}[i]), DestQPN: qps[1-i].Number(), PathMTU: wire.MTU256, AccessFlags: verbs.AccessRemoteWrite,
					Timeout: 18, RetryCnt: 7, RNRRetry: 7, MinRNRTimer: 1,
				}))
			}
			target, err := b.pd.AllocMR(1<<20, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			check(t, err)
			source, err := a.pd.AllocMR(1<<20, verbs.AccessLocalWrite)
			check(t, err)
			check(t, n.Impair(memnet.Impairment{Rate: 20e6, Mark: 100 * time.Microsecond}))
			for range 3 {
				check(t, qps[0].PostSend([]verbs.SendWR{{
					Opcode: verbs.WRRDMAWrite, Flags: verbs.SendSignaled, SGList: []verbs.SGE{source.SGE(0, 100<<10)}, RKey: target.RKey(),
				}}))
			}
			for _, wc := range a.wait(3) {
				if wc.Status != verbs.WCSuccess {
					t.Fatal(wc.Status)
				}
			}
			sender, receiver := namedCounters(t, a.device), namedCounters(t, b.device)
			marked, sent, handled := receiver["np_ecn_marked_roce_packets"], receiver["np_cnp_sent"], sender["rp_cnp_handled"]
			if (marked > 0) != row.marked || (sent > 0) != row.marked || (handled > 0) != row.marked || handled > sent {
				t.Errorf("%q, %s: %d marked, %d notifications sent, %d handled; the network marked %d", row.mode, version, marked, sent, handled, n.Counters().Marked)
			}
		}
	}
}

// Invalid options of congestion control are rejected before anything is opened.
func TestWrongCongestion(t *testing.T) {
	wrong := func(change func(p *DCQCN)) Option {
		p := DefaultDCQCN()
		change(&p)
		return WithDCQCN(p)
	}
	for name, option := range map[string]Option{
		"mode":      WithCongestion("on"),
		"recovery":  WithRecovery("none"),
		"no rate":   WithDCQCN(DCQCN{}),
		"min rate":  wrong(func(p *DCQCN) { p.MinRate = p.LineRate }),
		"too slow":  wrong(func(p *DCQCN) { p.MinRate = 1 }),
		"gain":      wrong(func(p *DCQCN) { p.Gain = 2 }),
		"time":      wrong(func(p *DCQCN) { p.RiseTime = 0 }),
		"no rise":   wrong(func(p *DCQCN) { p.AdditiveRise = 0 }),
		"no stages": wrong(func(p *DCQCN) { p.Stages = -1 }),
	} {
		if card, err := Open("nonexistent0", option); !errors.Is(err, verbs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				_ = card.Close()
			}
		}
	}
}
