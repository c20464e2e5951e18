// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"math"
	"runtime"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

const total = 100_000 // requests in each of these tests; their indices pass 2³²

// TestSendAndCompletionConcurrent has a program and a card exchange requests and completions; three of four requests
// are signaled. A producer that observes Outstanding overwrites no slot in use, and a CQ as large as the queue is not
// overrun.
func TestSendAndCompletionConcurrent(t *testing.T) {
	p, c, _ := sendEnds(t, SendGeometry(testEntries, 1, 0), math.MaxUint32-total/2)
	completions, polls, _ := completionEnds(t, CompletionGeometry(testEntries), math.MaxUint32-total/2)
	go func() {
		var s Send
		for taken := uint64(0); taken < total; {
			n := min(c.Available(), 3)
			for range n {
				sge := getSGE(c.Get(&s))
				if s.ID != taken || sge.Addr != taken {
					t.Errorf("request %d, address %d, want %d", s.ID, sge.Addr, taken)
				}
				taken++
				signaled := s.Flags&ib.SendSignaled != 0
				if signaled && !completions.Put(&CQE{ID: s.ID}) {
					t.Error("the CQ overran")
				}
				c.Advance(signaled)
			}
			c.Publish()
			completions.Publish()
			if n == 0 {
				runtime.Gosched()
			}
		}
	}()
	put, polled, expected := uint64(0), uint32(0), signaledAfter(0)
	var e CQE
	for expected < total || put < total {
		held := p.Outstanding(polled)
		if held > testEntries {
			t.Fatalf("%d outstanding", held)
		}
		for range min(uint64(testEntries-held), total-put, 5) {
			s := Send{ID: put}
			if isSignaled(put) {
				s.Flags = ib.SendSignaled
			}
			PutSGE(p.Put(&s), ib.SGE{Addr: put})
			put++
		}
		p.Publish()
		for range polls.Available(1) {
			if polls.Get(&e); e.ID != expected {
				t.Fatalf("completion of %d, want %d", e.ID, expected)
			}
			expected = signaledAfter(e.ID + 1)
			polled++
		}
		polls.Publish()
		runtime.Gosched()
	}
}

func isSignaled(id uint64) bool { return id%4 != 1 }

// signaledAfter returns the first signaled request from id on.
func signaledAfter(id uint64) uint64 {
	for !isSignaled(id) {
		id++
	}
	return id
}

// TestRecvConcurrent has a program post and a card consume requests. The program determines free slots from
// completions, as the words of the queue do not show them.
func TestRecvConcurrent(t *testing.T) {
	p, c, _ := recvEnds(t, RecvGeometry(testEntries, 2), math.MaxUint32-total/2)
	completions, polls, _ := completionEnds(t, CompletionGeometry(testEntries), 0)
	go func() {
		var r Recv
		for taken := uint64(0); taken < total; {
			if !c.Peek(&r) {
				runtime.Gosched()
				continue
			}
			if r.ID != taken || len(r.List()) != 2*SGELen || sgesOf(&r)[0].Addr != taken || sgesOf(&r)[1].Addr != ^taken {
				t.Errorf("%+v, want %d", r, taken)
			}
			c.Advance()
			if !completions.Put(&CQE{ID: r.ID}) {
				t.Error("the CQ overran")
			}
			completions.Publish()
			taken++
		}
	}()
	put, polled := uint64(0), p.Posted()
	var e CQE
	for got := uint64(0); got < total; {
		for range min(uint64(testEntries-p.Outstanding(polled)), total-put) {
			p.Put(put, []ib.SGE{{Addr: put}, {Addr: ^put}})
			put++
		}
		p.Publish()
		for range polls.Available(1) {
			if polls.Get(&e); e.ID != got {
				t.Fatalf("completion of %d, want %d", e.ID, got)
			}
			got++
			polled++
		}
		polls.Publish()
		runtime.Gosched()
	}
}

// TestCompletionWakeUp: the program arms, polls once more and sleeps; the card publishes, then disarms. A lost wake-up
// would hang the test.
func TestCompletionWakeUp(t *testing.T) {
	p, c, _ := completionEnds(t, CompletionGeometry(testEntries), math.MaxUint32-total/2)
	wake := make(chan struct{}, 1)
	go func() {
		for id := uint64(0); id < total; {
			for id < total && p.Put(&CQE{ID: id}) {
				id++
			}
			p.Publish()
			if takeArmed(p, false) {
				select {
				case wake <- struct{}{}:
				default: // a wake-up is already pending
				}
			}
			runtime.Gosched()
		}
	}()
	var e CQE
	for got := uint64(0); got < total; {
		n := c.Available(1)
		if n == 0 {
			c.Arm(false)
			if n = c.Available(1); n == 0 {
				<-wake
			}
		}
		for range n {
			if c.Get(&e); e.ID != got {
				t.Fatalf("entry %d, want %d", e.ID, got)
			}
			got++
		}
		c.Publish()
	}
}

// TestFlushFlagConcurrent: the card sets the flag before its last poll. If a program posts and does not see the flag,
// that poll finds its request.
func TestFlushFlagConcurrent(t *testing.T) {
	for range 2000 {
		p, c, _ := recvEnds(t, RecvGeometry(1, 1), 0)
		seen := make(chan bool)
		go func() {
			c.SetFlush(true)
			var r Recv
			seen <- c.Peek(&r)
		}()
		p.Put(1, nil)
		p.Publish()
		if mustRing := p.MustRing(); !<-seen && !mustRing {
			t.Fatal("the request was not seen, and the program does not ring")
		}
	}
}
