package verbs

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/ring"
)

// busyHost is a Spinner on a host whose processors are wanted, or not, at a time of its own.
type busyHost struct {
	now           time.Time
	yield         time.Duration // that a yield takes
	yields, dozes int
}

func (b *busyHost) Yield() {
	b.yields++
	b.now = b.now.Add(b.yield)
}

func (b *busyHost) Doze(<-chan struct{}) { b.dozes++ }

// spinning makes a context with queues that a card fills.
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

// An empty poll yields. When a yield took long, the polls after it wait, and then one yields again.
func TestSpinningGivesWay(t *testing.T) {
	b := &busyHost{yield: 100 * time.Microsecond}
	queues, _ := spinning(t, b, 1)
	for range 10 {
		poll(t, queues[0], 0)
	}
	if b.yields != 10 || b.dozes != 0 {
		t.Errorf("%+v while nobody wants the processor", b)
	}
	b.yield = 201 * time.Microsecond
	for range 1 + 1 + dozesPerYield { // yields; arms; waits
		poll(t, queues[0], 0)
	}
	if b.yields != 11 || b.dozes != dozesPerYield {
		t.Errorf("%+v after a yield that took long", b)
	}
	poll(t, queues[0], 0)
	if b.yields != 12 || b.dozes != dozesPerYield {
		t.Errorf("%+v when the polls that wait are over", b)
	}
}

// A program that polls several queues waits when all are armed, and none has had anything since.
func TestSpinningWaitsForAllQueues(t *testing.T) {
	b := &busyHost{yield: time.Millisecond}
	queues, cards := spinning(t, b, 2)
	poll(t, queues[0], 0) // yields
	for _, q := range queues {
		poll(t, q, 0) // arms
	}
	if b.dozes != 0 {
		t.Error("it has waited before all queues were armed")
	}
	poll(t, queues[1], 0)
	if b.dozes != 1 {
		t.Error("it has not waited when they were")
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
		t.Error("it waits though a queue that had something is not armed any more")
	}
	poll(t, queues[0], 0)
	poll(t, queues[1], 0)
	if b.dozes != 2 {
		t.Error("it does not wait though all queues are armed again")
	}
}
