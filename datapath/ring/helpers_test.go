// SPDX-License-Identifier: Apache-2.0

package ring

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/roced/roced/verbs/ib"
)

// starts are the initial indices of queues in these tests, some close to 2³².
var starts = []uint32{0, 1, 100, math.MaxUint32 - 20, math.MaxUint32}

// lies are invalid distances of the peer's index, for queues of testEntries slots.
var lies = []uint32{9, 1000, 1 << 31, math.MaxUint32 - 8, math.MaxUint32}

const testEntries = 8

// memoryFor returns a queue's memory, whose indices begin at start.
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

// takeArmed ends the due armings after a publish, and reports whether an event must be sent.
func takeArmed(p *CompletionProducer, solicited bool) bool { return p.Disarm(p.Due(solicited)) != 0 }

// garbage fills memory with pseudo-random bytes.
func garbage(memory []byte, seed uint64) {
	random := rand.New(rand.NewPCG(seed, seed))
	for i := 0; i+8 <= len(memory); i += 8 {
		binary.NativeEndian.PutUint64(memory[i:], random.Uint64())
	}
}

// sgesOf returns the SGEs of a receive request.
func sgesOf(r *Recv) (all []ib.SGE) {
	for sge, rest, ok := r.List().Next(); ok; sge, rest, ok = rest.Next() {
		all = append(all, sge)
	}
	return all
}
