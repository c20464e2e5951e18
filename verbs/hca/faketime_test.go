// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/memnet"
)

// TestFakeTime: in a bubble of testing/synctest a message takes exactly the delay of its network, however the program
// waits for it, also on a card with several workers.
func TestFakeTime(t *testing.T) {
	for _, workers := range []int{1, 3} {
		for name, wait := range map[string]func(*station, *verbs.CompChannel, *verbs.CQ){
			"waits for the CQ": func(s *station, _ *verbs.CompChannel, cq *verbs.CQ) {
				_, err := cq.Wait(s.Context(), make([]verbs.WC, 1))
				check(s, err)
			},
			"waits for the channel": waitForChannel,
		} {
			t.Run(fmt.Sprintf("%d workers, %s", workers, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { inFakeTime(t, workers, wait) })
			})
		}
	}
}

func waitForChannel(s *station, channel *verbs.CompChannel, cq *verbs.CQ) {
	got, err := channel.Get(s.Context())
	check(s, err)
	check(s, got.AckEvents(1))
	if n, err := cq.Poll(make([]verbs.WC, 1)); n != 1 || err != nil {
		s.Errorf("%d completions, %v", n, err)
	}
}

func inFakeTime(t *testing.T, workers int, wait func(*station, *verbs.CompChannel, *verbs.CQ)) {
	n := newNetwork(t, 1)
	a := newStation(t, newHost(t, n, "a", addressesA, WithWorkers(workers)).Card)
	b := newStation(t, newHost(t, n, "b", addressesB, WithWorkers(workers)).Card)
	channel, err := b.ctx.CreateCompChannel()
	check(t, err)
	cq, err := b.ctx.CreateCQEx(&verbs.CQInitAttr{Entries: depth, Channel: channel})
	check(t, err)
	qp, err := b.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: defaultCap()})
	check(t, err)
	check(t, qp.Activate(testQKey))
	b.receiveOn(qp, 0)
	_, err = cq.ReqNotify(verbs.CQNextComp)
	check(t, err)
	check(t, n.Impair(memnet.Impairment{Delay: time.Minute}))
	start := time.Now()
	wr := a.send(1, a.ah(addressesB[0].String()), b)
	wr.RemoteQPN = qp.Number()
	a.post(wr)
	wait(b, channel, cq)
	if took := time.Since(start); took != time.Minute {
		t.Errorf("the message took %v", took)
	}
}
