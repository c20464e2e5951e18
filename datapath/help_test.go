// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// helpful returns a pair whose second end has a sleeping worker, while the test runs the first end's rounds as a
// worker. The timeout of 4 s prevents retransmissions on a busy machine.
func helpful(t *testing.T) *pairOf {
	p := connect(t, wire.ServiceRC, 1, func(c *Connection) { c.Timeout = 20 })
	for _, e := range []*end{p.a, p.b} {
		e.engine.Do(func() {
			e.engine.helper = newHelper(e.engine, true)
			e.engine.helper.setUser("one")
		})
	}
	p.b.engine.Start()
	p.b.sleeps()
	return p
}

func (e *end) sleeps() {
	e.Helper()
	wait(e.TB.(*testing.T), "sleep", func() bool { return e.engine.runner.State() == runner.Asleep })
}

// sends posts a number of messages, for which the peer has receive requests.
func (p *pairOf) sends(count int) {
	for i := range count {
		p.b.postRecv(uint64(i), at(recvArea+64*i, 64))
		p.a.post(ring.SendConnected{Opcode: ib.WRSend, Flags: ib.SendSignaled}, ring.Atomic{}, at(64*i, 64))
	}
}

// completes waits for a number of completions at both ends. The first end completes its requests when it receives the
// acknowledgements, which the second end's worker has sent before.
func (p *pairOf) completes(count int) { p.complete(count, count) }

func (p *pairOf) complete(atA, atB int) {
	wait(p.T, "completions", func() bool {
		p.a.engine.Round()
		atA, atB = atA-p.successes(p.a), atB-p.successes(p.b)
		return atA == 0 && atB == 0
	})
}

func (p *pairOf) successes(e *end) int {
	got := e.poll()
	for _, c := range got {
		if c.Status != ib.WCSuccess {
			p.Fatalf("%+v", c)
		}
	}
	return len(got)
}

// TestHelp: one worker handles a message, its acknowledgement and the program's notification while the other worker
// stays asleep. A worker that was about to sleep, or handles its timers, runs itself; this is rare.
func TestHelp(t *testing.T) {
	p := helpful(t)
	helped := 0
	for range 100 {
		p.sends(1)
		p.a.engine.Round()
		early := p.successes(p.a)
		p.a.engine.Round() // it finds the acknowledgement, which completes the send
		atA, atB := p.successes(p.a), p.successes(p.b)
		if early == 0 && atA == 1 && atB == 1 && p.b.engine.runner.State() == runner.Asleep {
			helped++
			continue
		}
		p.complete(1-early-atA, 1-atB)
		p.b.sleeps()
	}
	if helped < 50 {
		t.Errorf("%d of 100 messages needed one worker", helped)
	}
}

// TestHelpIsForLittle: the other worker is woken if there are more packets, or if the lease of its engine is not free.
func TestHelpIsForLittle(t *testing.T) {
	p := helpful(t)
	p.sends(8)
	p.a.engine.Round()
	p.completes(8)
	p.b.sleeps()

	p.sends(1)
	p.b.engine.lease.Lock()
	p.a.engine.Round()
	p.b.engine.lease.Unlock()
	p.completes(1)
	p.b.sleeps()

	p.sends(1) // the control plane takes precedence
	p.b.engine.wanted.Add(1)
	p.a.engine.Round()
	p.b.engine.wanted.Add(-1)
	p.completes(1)
}

// TestHelpAtTheEnd: a closed engine needs no help.
func TestHelpAtTheEnd(t *testing.T) {
	p := helpful(t)
	help := p.b.engine.helper.help
	if err := p.b.engine.Close(); err != nil {
		t.Fatal(err)
	}
	if !help() {
		t.Error("its worker is to be woken")
	}
	p.sends(1)
	p.a.engine.Round()
}

// TestWhoHelps: a card whose programs run rounds has no helper, and neither has a card with several workers.
func TestWhoHelps(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	if p.a.engine.helper != nil || newHelper(p.a.engine, false) != nil {
		t.Error("an engine that programs run helps")
	}
	if e := newRig(t).engine; newHelper(e, true) != nil {
		t.Error("an engine of another network helps")
	}
}
