package ring

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

// starts are indices at which queues begin in these tests: 2³² is never far.
var starts = []uint32{0, 1, 100, math.MaxUint32 - 20, math.MaxUint32}

// lies are distances that an index of the peer cannot have, with the 8 slots of
// the queues here.
var lies = []uint32{9, 1000, 1 << 31, math.MaxUint32 - 8, math.MaxUint32}

const testEntries = 8

// memoryFor makes a queue's memory, whose indices begin at start.
func memoryFor(g Geometry, start uint32) []byte {
	memory := Alloc(g.Size())
	word(memory, 0).Store(start)
	word(memory, consumerWords).Store(start)
	return memory
}

func sendEnds(t testing.TB, g Geometry, start uint32) (*SendProducer, *SendConsumer, []byte) {
	t.Helper()
	memory := memoryFor(g, start)
	p, err := NewSendProducer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewSendConsumer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	return p, c, memory
}

func recvEnds(t testing.TB, g Geometry, start uint32) (*RecvProducer, *RecvConsumer, []byte) {
	t.Helper()
	memory := memoryFor(g, start)
	p, err := NewRecvProducer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewRecvConsumer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	return p, c, memory
}

func completionEnds(t testing.TB, g Geometry, start uint32) (*CompletionProducer, *CompletionConsumer, []byte) {
	t.Helper()
	memory := memoryFor(g, start)
	p, err := NewCompletionProducer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewCompletionConsumer(memory, g)
	if err != nil {
		t.Fatal(err)
	}
	return p, c, memory
}

// takeArmed ends what is due after a publish, and reports whether an event is owed.
func takeArmed(p *CompletionProducer, solicited bool) bool { return p.Disarm(p.Due(solicited)) != 0 }

// garbage fills memory by chance, the same at each run.
func garbage(memory []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, seed))
	for i := 0; i+8 <= len(memory); i += 8 {
		binary.NativeEndian.PutUint64(memory[i:], random.Uint64())
	}
}

// sgesOf are a receive's.
func sgesOf(r *Recv) (all []ib.SGE) {
	for sge, rest, ok := r.List().Next(); ok; sge, rest, ok = rest.Next() {
		all = append(all, sge)
	}
	return all
}
