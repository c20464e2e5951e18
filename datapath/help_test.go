package datapath

import (
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/runner"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// helpful is a pair whose second end has a worker, which sleeps, and whose first one's rounds the test runs as a worker.
// Nothing is sent again, however long the worker waits for a processor: that is 4 s.
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

// sends posts so many messages, for which the peer has receives.
func (p *pairOf) sends(count int) {
	for i := range count {
		p.b.postRecv(uint64(i), at(recvArea+64*i, 64))
		p.a.post(ring.SendConnected{Opcode: ib.WRSend, Flags: ib.SendSignaled}, ring.Atomic{}, at(64*i, 64))
	}
}

// completes waits for so many completions at both ends. The first end has only acknowledges to find, so the second one's
// worker has done what is to be done there.
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

// TestHelp: a message, its acknowledge, and what a program is told need one worker, while the other one sleeps on. Where
// that one is just about to sleep, or looks at its timers, it is woken; on a busy machine that is now and then.
func TestHelp(t *testing.T) {
	p := helpful(t)
	helped := 0
	for range 100 {
		p.sends(1)
		p.a.engine.Round()
		early := p.successes(p.a)
		p.a.engine.Round() // it finds the acknowledge, by which the send is complete
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

// TestHelpIsForLittle: the other worker is woken for more packets, and where its engine is in use.
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

	p.sends(1) // the control plane comes first
	p.b.engine.wanted.Add(1)
	p.a.engine.Round()
	p.b.engine.wanted.Add(-1)
	p.completes(1)
}

// TestHelpAtTheEnd: an engine that has ended needs none.
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

// TestWhoHelps: programs that run rounds themselves do not run those of others, nor do cards with several workers.
func TestWhoHelps(t *testing.T) {
	p := connect(t, wire.ServiceRC, 1, nil)
	if p.a.engine.helper != nil || newHelper(p.a.engine, false) != nil {
		t.Error("an engine that programs run helps")
	}
	if e := newRig(t).engine; newHelper(e, true) != nil {
		t.Error("an engine of another network helps")
	}
}
