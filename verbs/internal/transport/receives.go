// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"fmt"
	"sync"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Batch is the maximum number of requests that are posted, and of completions that are polled, at once.
const Batch = 64

// CacheLine is the length of a cache line, in bytes. Buffers are aligned to cache lines.
const CacheLine = 64

// Lines rounds a length up to a multiple of CacheLine.
func Lines(length int) int { return (length + CacheLine - 1) &^ (CacheLine - 1) }

// ErrKept is the error that packages rc and ud export as ErrKept.
var ErrKept = errno.New("the program holds all receive buffers", unix.ENOBUFS)

// Receives holds the buffers of a receive queue. Each buffer is posted, lent to the program with a message, or
// returned: it then waits to be posted together with others.
type Receives struct {
	memory []byte
	stride int
	places uint32 // number of buffers for which the memory has room; further ones overlap these
	post   func([]verbs.RecvWR) error

	mu       sync.Mutex
	requests []verbs.RecvWR // by slot
	loans    []uint32       // by slot: the number of its loans and returns, odd while it is lent
	returned []verbs.RecvWR
	enough   int                // number of returned buffers that are posted together
	spare    []*[Batch]verbs.WC // unused arrays for completions; each waiting goroutine uses one
	stats    ReceiveStats
}

// ReceiveStats counts messages and buffers.
type ReceiveStats struct {
	Received uint64 // number of messages lent
	Lent     int    // number of buffers that the program holds now
	MostLent int    // maximum of Lent
	Starved  uint64 // number of times that the program came to hold all buffers
}

// Loan identifies one loan of a buffer. A loan that has been returned stays invalid when the buffer is lent again.
type Loan struct{ slot, number uint32 }

// Start divides the memory of mr into depth buffers of length bytes, stride bytes apart, and posts them. The buffers
// overlap if the memory is too short for all of them; it may also be longer.
func (r *Receives) Start(mr *verbs.MR, depth, stride, length int, post func([]verbs.RecvWR) error) error {
	r.memory, r.stride, r.places, r.post = mr.Bytes(), stride, 1, post
	if stride > 0 {
		r.places += uint32((len(r.memory) - length) / stride)
	}
	r.enough = max(1, min(Batch/2, depth/8))
	r.requests, r.loans = make([]verbs.RecvWR, depth), make([]uint32, depth)
	r.returned = make([]verbs.RecvWR, 0, r.enough+depth)
	sges := make([]verbs.SGE, depth)
	for i := range depth {
		sges[i] = mr.SGE(r.start(uint32(i)), length)
		r.requests[i] = verbs.RecvWR{ID: uint64(i), SGList: sges[i : i+1]}
	}
	return post(r.requests)
}

// start returns the offset of a buffer.
func (r *Receives) start(slot uint32) int {
	if slot >= r.places {
		slot %= r.places
	}
	return int(slot) * r.stride
}

// Data returns the first length bytes of a loan's buffer.
func (r *Receives) Data(l Loan, length uint32) []byte {
	start := r.start(l.slot)
	return r.memory[start : start+int(length) : start+int(length)]
}

// Take receives at most limit messages, and at most Batch. fetch waits or polls for completions. lend is called for
// each completion in order. It creates a message, or returns false, and the buffer is then posted again. Calls of lend
// do not overlap. The error is that of fetch, or ErrKept if the program holds all buffers.
func (r *Receives) Take(limit int, fetch func([]verbs.WC) (int, error), lend func(*verbs.WC, Loan) bool) (lent int, err error) {
	done, err := r.borrow()
	if err != nil {
		return 0, err
	}
	n, err := fetch(done[:min(limit, Batch)])
	return r.settle(done, n, lend), err
}

// borrow returns an array for completions. If no buffers are posted, it first posts the returned ones, so that waiting
// goroutines can receive messages.
func (r *Receives) borrow() (*[Batch]verbs.WC, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stats.Lent == len(r.requests) {
		return nil, fmt.Errorf("receive: %w: release messages sooner (copy the data to keep them), or increase RecvDepth (%d)",
			ErrKept, len(r.requests))
	}
	if r.stats.Lent+len(r.returned) == len(r.requests) {
		r.postReturned()
	}
	if len(r.spare) == 0 {
		return new([Batch]verbs.WC), nil
	}
	done := r.spare[len(r.spare)-1]
	r.spare = r.spare[:len(r.spare)-1]
	return done, nil
}

// settle lends the buffers of n completions and makes their array available again.
func (r *Receives) settle(done *[Batch]verbs.WC, n int, lend func(*verbs.WC, Loan) bool) (lent int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range done[:n] {
		slot := uint32(done[i].ID)
		if !lend(&done[i], Loan{slot, r.loans[slot] + 1}) {
			r.giveBack(slot)
			continue
		}
		r.loans[slot]++
		lent++
	}
	r.spare = append(r.spare, done)
	r.count(lent)
	return lent
}

func (r *Receives) count(lent int) {
	s := &r.stats
	s.Received += uint64(lent)
	s.Lent += lent
	s.MostLent = max(s.MostLent, s.Lent)
	if lent > 0 && s.Lent == len(r.requests) {
		s.Starved++
	}
}

// Return returns n loans. It ignores the zero Loan and loans that have already been returned.
func (r *Receives) Return(n int, loan func(i int) Loan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range n {
		if l := loan(i); r.isLent(l) {
			r.loans[l.slot]++
			r.stats.Lent--
			r.giveBack(l.slot)
		}
	}
}

// IsLent reports whether a loan has not been returned.
func (r *Receives) IsLent(l Loan) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isLent(l)
}

func (r *Receives) isLent(l Loan) bool { return l.number%2 == 1 && r.loans[l.slot] == l.number }

// Stats returns the counts.
func (r *Receives) Stats() ReceiveStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stats
}

// giveBack adds a buffer to the returned ones, and posts them if they are enough.
func (r *Receives) giveBack(slot uint32) {
	r.returned = append(r.returned, r.requests[slot])
	if len(r.returned) >= r.enough {
		r.postReturned()
	}
}

// postReturned posts the returned buffers. It ignores errors: posting fails only if the queue pair or the device has
// failed, and the next receive returns that error.
func (r *Receives) postReturned() {
	_ = r.post(r.returned)
	r.returned = r.returned[:0]
}
