// SPDX-License-Identifier: Apache-2.0

package ring_test

import (
	"testing"

	"github.com/roced/roced/internal/litmus"
)

// TestLitmusQueue uses a queue of one slot, so that the second entry reuses it. The labels are the names of the Go
// functions; verbs/c/queue.h does the same, with memory_order_acquire for the card's index.
func TestLitmusQueue(t *testing.T) {
	litmus.Check(t, map[string]string{
		"consumer.available: load acquire": "C has that",
		"producer.free: load acquire":      "C has that",
		"producer.free: load plain":        "a store does not pass the branch before it; a compiler may move it",
	}, func(p *litmus.Program) {
		p.Thread("producer", func(t *litmus.Thread) {
			t.Store("Put", "slot", litmus.Plain, 1)
			t.Store("producer.publish", "produced", litmus.Atomic, 1)
			t.Await("producer.free", "consumed", litmus.Atomic, 1)
			t.Store("Put", "slot", litmus.Plain, 2)
			t.Store("producer.publish", "produced", litmus.Atomic, 2)
		})
		p.Thread("consumer", func(t *litmus.Thread) {
			for entry := 1; entry <= 2; entry++ {
				t.Await("consumer.available", "produced", litmus.Atomic, entry)
				p.Never("another entry", t.Load("Get", "slot", litmus.Plain).IsNot(entry))
				t.Store("consumer.publish", "consumed", litmus.Atomic, entry)
			}
		})
	})
}

// TestLitmusDoorbell models a post by Go or by C (post_list, roced_ring, roced_wake) to a card that falls asleep.
func TestLitmusDoorbell(t *testing.T) {
	litmus.Check(t, nil, postAgain, postTwo)
}

// postAgain models a post to a queue pair whose bit was set by an earlier post.
func postAgain(p *litmus.Program) {
	for _, place := range []string{"produced", "bits", "summary"} {
		p.Set(place, 1)
	}
	p.Thread("program", func(t *litmus.Thread) {
		t.Store("producer.publish", "produced", litmus.Atomic, 2)
		set(t, "bits")
		set(t, "summary")
		wake(t)
	})
	p.Thread("card", func(t *litmus.Thread) {
		first := collect(t)
		t.Store("SetAsleep", "asleep", litmus.Atomic, 1)
		last := collect(t)
		unseen := func(v litmus.Values) bool { return v(first) != 2 && v(last) != 2 }
		t.If(unseen, func() { t.Await("sleep", "woken", litmus.Plain, 1) })
	})
}

// postTwo models two posts to queue pairs whose bits are in the same word. For one of them, the model contains only the
// summary bit.
func postTwo(p *litmus.Program) {
	p.Thread("program", func(t *litmus.Thread) {
		set(t, "bits")
		set(t, "summary")
		wake(t)
	})
	p.Thread("other", func(t *litmus.Thread) {
		set(t, "summary")
		wake(t)
	})
	p.Thread("card", func(t *litmus.Thread) {
		t.Store("SetAsleep", "asleep", litmus.Atomic, 1)
		collect(t)
	})
	left := p.Memory("bits").Is(1)
	p.Never("a bit that the summary does not show", left.And(p.Memory("summary").Is(0)))
	p.Never("a bit, and the card is not woken", left.And(p.Memory("woken").Is(0)))
}

// set models set of doorbell.go, or roced_set_bit.
func set(t *litmus.Thread, word string) {
	was := t.Load("set "+word, word, litmus.Atomic)
	t.If(was.Is(0), func() { t.Change("set "+word, word, litmus.Atomic, litmus.To(1)) })
}

// wake models the end of Ring.
func wake(t *litmus.Thread) {
	asleep := t.Load("Ring", "asleep", litmus.Atomic)
	t.If(asleep.Is(1), func() { t.Store("Wake", "woken", litmus.Plain, 1) })
}

// collect models Doorbell.Collect, and the load of the queue's index for a bit.
func collect(t *litmus.Thread) (produced litmus.Reg) {
	take := func(word string, then func()) {
		some := t.Load("take "+word, word, litmus.Atomic)
		t.If(some.Is(1), func() {
			t.Change("take "+word, word, litmus.Atomic, litmus.To(0))
			then()
		})
	}
	take("summary", func() {
		take("bits", func() { produced = t.Load("consumer.available", "produced", litmus.Atomic) })
	})
	return produced
}

// arm models a program that arms a queue, polls once more, and sleeps. again is the order of the load in that poll.
func arm(again litmus.Order) func(p *litmus.Program) {
	return func(p *litmus.Program) {
		p.Thread("card", func(t *litmus.Thread) {
			t.Store("Put", "cqe", litmus.Plain, 1)
			t.Store("CompletionProducer.Publish", "produced", litmus.Atomic, 1)
			armed := t.Load("Due", "armed", litmus.Atomic)
			t.If(armed.Is(1), func() {
				was := t.Change("Disarm", "armed", litmus.Atomic, litmus.To(0))
				t.If(was.Is(1), func() { t.Store("Notify", "event", litmus.Release, 1) })
			})
		})
		p.Thread("program", func(t *litmus.Thread) {
			t.Change("arm", "armed", litmus.Atomic, litmus.To(1))
			ready := t.Load("Available", "produced", again)
			t.If(ready.Is(0), func() {
				t.Await("sleep", "event", litmus.Acquire, 1)
				p.Never("an event, and no completion", t.Load("Available", "produced", again).Is(0))
			})
			p.Never("an empty entry", t.Load("Get", "cqe", litmus.Plain).Is(0))
		})
	}
}

// TestLitmusArm shows that the load after an arming must be sequentially consistent in C, too: acquire is too weak.
func TestLitmusArm(t *testing.T) {
	litmus.Check(t, map[string]string{
		"Disarm: load plain":  "nothing depends on it",
		"Disarm: store plain": "nothing depends on it",
		"arm: load plain":     "the store counts",
		"Notify: store plain": "the loads before it litmus.Acquire, and the index was published before them",
	}, arm(litmus.Atomic))
	if litmus.Fault(arm(litmus.Acquire)) == nil {
		t.Error("acquire suffices")
	}
}

// TestLitmusFlush posts a receive request to a queue pair that enters ERR: the card flushes it, or the post rings.
func TestLitmusFlush(t *testing.T) {
	litmus.Check(t, nil, func(p *litmus.Program) {
		var flushed, rings litmus.Reg
		p.Thread("program", func(t *litmus.Thread) {
			t.Store("producer.publish", "produced", litmus.Atomic, 1)
			rings = t.Load("MustRing", "flush", litmus.Atomic)
		})
		p.Thread("card", func(t *litmus.Thread) {
			t.Store("SetFlush", "flush", litmus.Atomic, 1)
			flushed = t.Load("Peek", "produced", litmus.Atomic)
		})
		p.Never("a receive that stays", rings.Is(0).And(flushed.Is(0)))
	})
}

// ends models a queue that fails, or whose session ends. If publishes is set the card publishes its completions first,
// and if looks is set the program, whose poll was empty, polls once more after the end.
func ends(publishes, looks bool) func(p *litmus.Program) {
	return func(p *litmus.Program) {
		p.Thread("card", func(t *litmus.Thread) {
			t.Store("Put", "cqe", litmus.Plain, 1)
			if publishes {
				t.Store("Publish", "produced", litmus.Atomic, 1)
			}
			t.Store("Fail", "failed", litmus.Atomic, 1)
			if !publishes {
				t.Store("Publish", "produced", litmus.Atomic, 1)
			}
		})
		p.Thread("program", func(t *litmus.Thread) {
			ready := t.Load("Available", "produced", litmus.Atomic)
			failed := t.Load("Failed", "failed", litmus.Atomic)
			if looks {
				t.If(ready.Is(0).And(failed.Is(1)), func() { ready = t.Load("Available", "produced", litmus.Atomic) })
			}
			p.Never("the error comes before the completion", failed.Is(1).And(ready.Is(0)))
		})
	}
}

// TestLitmusEnds shows that both are needed: the order of the card's stores, and the second poll of the program.
func TestLitmusEnds(t *testing.T) {
	litmus.Check(t, map[string]string{
		"Available: load acquire": "the second poll follows a load that acquires",
		"Available: load plain":   "likewise",
		"Failed: load acquire":    "nothing is stored before it",
		"Publish: store plain":    "Fail releases",
	}, ends(true, true))
	for _, test := range []struct{ publishes, looks bool }{{true, false}, {false, true}} {
		if litmus.Fault(ends(test.publishes, test.looks)) == nil {
			t.Errorf("no fault: %+v", test)
		}
	}
}

// TestLitmusCounted has one thread of a C program poll a CQ of one entry, and another one post as soon as the
// completion is counted. See roced_cq_publish in verbs/c/queue.h, settle in verbs/c/cq.c, and qp_send_room in
// verbs/c/post.c.
func TestLitmusCounted(t *testing.T) {
	litmus.Check(t, map[string]string{
		"SendConsumer.Publish: store plain":    "CompletionProducer.Publish releases",
		"SendConsumer.Available: load acquire": "message passing",
		"producer.free: load acquire":          "SendConsumer.Available acquires before it",
		"producer.free: load plain":            "likewise",
		"roced_cq_publish: store plain":        "settle releases",
		"roced_send_progress: load plain":      "qp_send_room acquires before it",
	}, func(p *litmus.Program) {
		p.Thread("card", func(t *litmus.Thread) {
			t.Store("SendConsumer.Publish", "progress", litmus.Atomic, 1)
			t.Store("Put", "cqe", litmus.Plain, 1)
			t.Store("CompletionProducer.Publish", "completed", litmus.Atomic, 1)
			t.Await("SendConsumer.Available", "posted", litmus.Atomic, 2)
			p.Never("no room for a completion", t.Load("producer.free", "consumed", litmus.Atomic).Is(0))
			p.Never("an old request", t.Load("Get", "wqe", litmus.Plain).IsNot(2))
			t.Store("Put", "cqe", litmus.Plain, 2)
		})
		p.Thread("poller", func(t *litmus.Thread) {
			t.Await("roced_cq_ready", "completed", litmus.Acquire, 1)
			p.Never("a later completion", t.Load("fill_wc", "cqe", litmus.Plain).IsNot(1))
			t.Store("roced_cq_publish", "consumed", litmus.Release, 1)
			t.Change("settle", "polled", litmus.Release, litmus.To(1))
		})
		p.Thread("poster", func(t *litmus.Thread) {
			t.Await("qp_send_room", "polled", litmus.Acquire, 1)
			p.Never("more polled than written", t.Load("roced_send_progress", "progress", litmus.Acquire).Is(0))
			t.Store("put", "wqe", litmus.Plain, 2)
			t.Store("roced_send_publish", "posted", litmus.Atomic, 2)
		})
	})
}
