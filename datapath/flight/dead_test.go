// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"testing"
	"time"
)

// With a thousand flows whose dead peers have never responded, the packets sent to these are bounded, and flows with
// live peers get their turn soon, whether their peers have responded before or not.
func TestDeadPeersThatHaveNeverAnswered(t *testing.T) {
	for name, row := range map[string]struct{ sends, reads int }{"writers": {1000, 0}, "readers": {0, 1000}, "both": {500, 500}, "little": {1, 0}} {
		t.Run(name, func(t *testing.T) {
			w, tenant := newWorld(t), new(Tenant)
			old := known(w.many(tenant, 1, row.sends, row.reads))
			died(w.many(tenant, 5000, row.sends, row.reads))
			young := w.many(tenant, 20, row.sends, row.reads)
			w.run(time.Second, finished(old))
			t.Logf("the known one was done after %v", w.now.Sub(start))
			w.run(2*time.Second, finished(young))
			t.Logf("all others after %v; at most %v packets in flight to strangers", w.now.Sub(start), w.most)
		})
	}
}

// The packets in flight to peers that have not responded, sent within one patience, do not exceed the card's limit plus
// the packets that the first flows sent while there were few flows.
func TestFirstPacketsAreBounded(t *testing.T) {
	for _, k := range []Kind{Sends, Reads} {
		w, tenant := newWorld(t), new(Tenant)
		w.scheduler.Patience = time.Hour
		amount := [kinds]int{}
		amount[k] = 100
		all := died(w.many(tenant, 5000, amount[Sends], amount[Reads]))
		w.run(time.Second, func() bool { return w.now.Sub(start) > timeout/2 })
		if w.most[k] > 2*maxFlight || w.most[k] < maxFlight/2 {
			t.Errorf("kind %d: %d packets in flight", k, w.most[k])
		}
		served := 0
		for _, s := range all {
			if s.inFlight[k] > 0 {
				served++
			}
		}
		if served < maxFlight/4 {
			t.Errorf("kind %d: only %d flows have sent packets", k, served)
		}
	}
}

// Flows whose peers have died after a response hold all grants only once: other flows wait for one patience.
func TestDeadPeersThatHaveAnswered(t *testing.T) {
	for name, row := range map[string]struct{ sends, reads int }{"writers": {1000, 0}, "readers": {0, 1000}} {
		t.Run(name, func(t *testing.T) {
			w, tenant := newWorld(t), new(Tenant)
			died(known(w.many(tenant, 3000, row.sends, row.reads)))
			live := known(w.many(tenant, 20, row.sends, row.reads))
			w.run(time.Second, finished(live))
			t.Logf("done after %v", w.now.Sub(start))
		})
	}
}

// Dead peers of one tenant reduce the part of another tenant, but do not delay it otherwise.
func TestDeadPeersOfAnotherTenant(t *testing.T) {
	w, one, other := newWorld(t), new(Tenant), new(Tenant)
	died(known(w.many(one, 1000, 1000, 1000)))
	w.step()
	live := known(w.many(other, 100, 1000, 0))
	w.run(40*time.Millisecond, finished(live)) // less than one patience
}

// A flow whose peer responds again gets grants again. Flows that wait for grants held by a slow peer wait longer each
// time.
func TestPatienceDoubles(t *testing.T) {
	w, tenant := newWorld(t), new(Tenant)
	all := died(known(w.many(tenant, 200, 1000, 0)))
	w.step()
	p := &tenant.known[Sends]
	for vain := uint8(0); vain < 3; vain++ {
		if p.vain != vain || p.head == nil {
			t.Fatalf("vain %d, %d wait", p.vain, p.waiting)
		}
		w.now = w.scheduler.Deadline()
		w.scheduler.Expire(w.now)
		known(all)
		for _, s := range all {
			s.Ready()
		}
		w.step()
	}
	s := all[0]
	s.answered(event{of: s, kind: Sends, packets: s.inFlight[Sends]})
	if p.vain != 0 {
		t.Errorf("after a response vain is %d, want 0", p.vain)
	}
}
