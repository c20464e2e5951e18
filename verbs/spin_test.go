// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
)

// busyHost is a Spinner on a host with configurable demand for the processors.
type busyHost struct {
	now           time.Time
	yield         time.Duration // duration of a yield
	yields, dozes int
}

func (b *busyHost) Yield() {
	b.yields++
	b.now = b.now.Add(b.yield)
}

func (b *busyHost) Doze(<-chan struct{}) { b.dozes++ }

// spinning creates a context with queues that a card fills.
func spinning(t *testing.T, b *busyHost, n int) (queues []*CQ, cards []*ring.CompletionProducer) {
	ctx := &Context{manners: newManners(b)}
	ctx.manners.now = func() time.Time { return b.now }
	for range n {
		geometry := ring.CompletionGeometry(4)
		memory := ring.Alloc(geometry.Size())
		consumer, err := ring.NewCompletionConsumer(memory, geometry)
		if err != nil {
			t.Fatal(err)
		}
		producer, err := ring.NewCompletionProducer(memory, geometry)
		if err != nil {
			t.Fatal(err)
		}
		queues, cards = append(queues, &CQ{ctx: ctx, queue: consumer, closed: make(chan struct{})}), append(cards, producer)
	}
	return queues, cards
}

func poll(t *testing.T, q *CQ, want int) {
	t.Helper()
	var wcs [4]WC
	if n, err := q.Poll(wcs[:]); n != want || err != nil {
		t.Fatalf("%d, %v", n, err)
	}
}

// TestSpinningGivesWay checks that an empty poll yields, and that after a long yield the following polls wait before
// one yields again.
func TestSpinningGivesWay(t *testing.T) {
	b := &busyHost{yield: 100 * time.Microsecond}
	queues, _ := spinning(t, b, 1)
	for range 10 {
		poll(t, queues[0], 0)
	}
	if b.yields != 10 || b.dozes != 0 {
		t.Errorf("got %+v without demand for the processor", b)
	}
	b.yield = 201 * time.Microsecond
	for range 1 + 1 + dozesPerYield { // yields; arms; waits
		poll(t, queues[0], 0)
	}
	if b.yields != 11 || b.dozes != dozesPerYield {
		t.Errorf("got %+v after a long yield", b)
	}
	poll(t, queues[0], 0)
	if b.yields != 12 || b.dozes != dozesPerYield {
		t.Errorf("got %+v after the waiting polls", b)
	}
}

// TestSpinningWaitsForAllQueues checks that a program that polls several queues waits only when all are armed and no
// completion has arrived since.
func TestSpinningWaitsForAllQueues(t *testing.T) {
	b := &busyHost{yield: time.Millisecond}
	queues, cards := spinning(t, b, 2)
	poll(t, queues[0], 0) // yields
	for _, q := range queues {
		poll(t, q, 0) // arms
	}
	if b.dozes != 0 {
		t.Error("a poll waited before all queues were armed")
	}
	poll(t, queues[1], 0)
	if b.dozes != 1 {
		t.Error("no poll waited after all queues were armed")
	}
	ctx := queues[0].ctx
	token, err := ctx.slots.take()
	if err != nil {
		t.Fatal(err)
	}
	ctx.slots.at(token).qp.Store(&QP{})
	cards[0].Put(&ring.CQE{Token: token})
	cards[0].Publish()
	poll(t, queues[0], 1)
	poll(t, queues[1], 0)
	if b.dozes != 1 {
		t.Error("a poll waited although a queue with a completion was no longer armed")
	}
	poll(t, queues[0], 0)
	poll(t, queues[1], 0)
	if b.dozes != 2 {
		t.Error("no poll waited although all queues were armed again")
	}
}
