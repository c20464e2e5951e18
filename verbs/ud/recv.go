package ud

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
)

// receiver is an endpoint's receiving half. Each buffer is posted, lent, or in returned, where it
// waits to be posted together with others.
type receiver struct {
	mu       sync.Mutex
	memory   []byte
	stride   int
	requests []verbs.RecvWR // by slot
	lives    []uint32       // by slot: odd while it is lent
	returned []verbs.RecvWR
	enough   int // how many returned buffers are posted together
	spare    []*[batch]verbs.WC
	failed   error // why receiving has ended: the queue pair is in error
	stats    recvStats
}

type recvStats struct {
	received, strays, starved uint64
	lent, mostLent            int
}

// prepare makes the requests, which are used again and again, and posts them.
func (r *receiver) prepare(e *Endpoint, stride int) error {
	depth := e.options.RecvDepth
	r.memory, r.stride = e.mr.Bytes()[:depth*stride], stride
	r.requests = make([]verbs.RecvWR, depth)
	r.lives = make([]uint32, depth)
	r.enough = max(1, min(batch/2, depth/8))
	sges := make([]verbs.SGE, depth)
	for i := range depth {
		sges[i] = e.mr.SGE(i*stride, stride)
		r.requests[i] = verbs.RecvWR{ID: uint64(i), SGList: sges[i : i+1]}
	}
	r.returned = make([]verbs.RecvWR, 0, r.enough+depth)
	return e.qp.PostRecv(r.requests)
}

// slot is the memory of a buffer.
func (r *receiver) slot(i uint32) []byte {
	start := int(i) * r.stride
	return r.memory[start : start+r.stride : start+r.stride]
}

// Recv waits for a message until ctx is done. The message is the caller's until its Release.
// ErrKept if the program holds all buffers.
func (e *Endpoint) Recv(ctx context.Context) (Message, error) {
	if e == nil {
		return Message{}, fmt.Errorf("receive: %w", errNil)
	}
	var one [1]Message
	_, err := e.RecvBatch(ctx, one[:])
	return one[0], err
}

// RecvBatch waits for messages, and takes those that are there, at most 64 and as many as fit. It
// returns their number: at least 1 if the error is nil. Endpoint.Release returns them together.
func (e *Endpoint) RecvBatch(ctx context.Context, messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("receive: %w", errNil)
	}
	if err := ctx.Err(); err != nil {
		return 0, e.explain(err)
	}
	for len(messages) > 0 {
		if n, err := e.take(ctx, true, messages); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// Poll is RecvBatch, but does not wait: 0 if there are no messages.
func (e *Endpoint) Poll(messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("poll: %w", errNil)
	}
	if len(messages) == 0 {
		return 0, nil
	}
	return e.take(context.Background(), false, messages)
}

// take takes messages; it waits for some if wait is set. It gives 0 and no error if all messages that
// came were discarded because they were not from the peer.
func (e *Endpoint) take(ctx context.Context, wait bool, messages []Message) (n int, err error) {
	wcs, err := e.recv.borrow(e)
	if err != nil {
		return 0, e.explain(err)
	}
	done := wcs[:min(len(messages), batch)]
	if wait {
		n, err = await(ctx, e.recvCQ, e.options.Spin, done)
	} else {
		n, err = e.recvCQ.Poll(done)
	}
	n, failed := e.lend(wcs, n, messages)
	if n > 0 {
		return n, nil // the next call returns the error
	}
	return 0, e.explain(cmp.Or(err, failed))
}

// await waits for completions, asleep or spinning, until ctx is done.
func await(ctx context.Context, cq *verbs.CQ, spin bool, wcs []verbs.WC) (n int, err error) {
	if !spin {
		return cq.Wait(ctx, wcs)
	}
	for n == 0 && err == nil {
		if n, err = cq.Poll(wcs); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	return n, err
}

// borrow gives the caller an array for completions, so that several callers can wait at once.
func (r *receiver) borrow(e *Endpoint) (*[batch]verbs.WC, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return nil, r.failed
	}
	if r.stats.lent == len(r.requests) {
		return nil, fmt.Errorf("receive: %w: release messages sooner (copy what is to be kept), or ask for more than RecvDepth %d", ErrKept, len(r.requests))
	}
	if r.stats.lent+len(r.returned) == len(r.requests) {
		r.post(e)
	}
	if len(r.spare) == 0 {
		return new([batch]verbs.WC), nil
	}
	wcs := r.spare[len(r.spare)-1]
	r.spare = r.spare[:len(r.spare)-1]
	return wcs, nil
}

// lend makes messages of n completions, and takes their array back.
func (e *Endpoint) lend(wcs *[batch]verbs.WC, n int, messages []Message) (lent int, failed error) {
	r := &e.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range wcs[:n] {
		if err := wcs[i].Err(); err != nil {
			r.failed = cmp.Or(r.failed, fmt.Errorf("receive: %w", err))
		} else if e.accept(&messages[lent], &wcs[i]) {
			lent++
		}
	}
	r.spare = append(r.spare, wcs)
	r.countLent(lent)
	return lent, r.failed
}

// accept makes a message of a completion, unless its sender is not the peer.
func (e *Endpoint) accept(m *Message, wc *verbs.WC) bool {
	r := &e.recv
	if e.fill(m, wc); !e.isFromPeer(m) {
		r.stats.strays++
		r.giveBack(e, m.slot)
		*m = Message{}
		return false
	}
	r.lives[m.slot]++
	m.life = r.lives[m.slot]
	return true
}

// fill assigns field by field: a composite literal would be built on the stack and copied.
func (e *Endpoint) fill(m *Message, wc *verbs.WC) {
	slot := uint32(wc.ID)
	grh, payload := wc.Payload(e.recv.slot(slot))
	m.Data = payload
	source, dest := grh.Addresses()
	number := wc.QPN
	if dest.IsMulticast() {
		number = verbs.MulticastQPN
	}
	m.From.GID, m.From.QPN, m.From.QKey = source, wc.SrcQP, e.qkey
	m.To.GID, m.To.QPN, m.To.QKey = dest, number, e.qkey
	m.Imm, m.HasImm = wc.ImmData, wc.Flags&verbs.WCWithImm != 0
	m.endpoint, m.slot = e, slot
}

// isFromPeer says whether a message is from the peer of Dial; true if there is none, or it is a
// group.
func (e *Endpoint) isFromPeer(m *Message) bool {
	return e.peer.IsZero() || e.peer.IsGroup() || m.From.GID == e.peer.GID && m.From.QPN == e.peer.QPN
}

func (r *receiver) countLent(n int) {
	s := &r.stats
	s.received += uint64(n)
	s.lent += n
	s.mostLent = max(s.mostLent, s.lent)
	if n > 0 && s.lent == len(r.requests) {
		s.starved++
	}
}

// Release returns the buffers of messages, for new messages.
func (e *Endpoint) Release(messages []Message) {
	if e == nil {
		return
	}
	r := &e.recv
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range messages {
		e.takeBack(&messages[i])
	}
}

func (e *Endpoint) release(m *Message) {
	e.recv.mu.Lock()
	defer e.recv.mu.Unlock()
	e.takeBack(m)
}

// takeBack takes back a message's buffer, unless that was done before or the message is another
// endpoint's.
func (e *Endpoint) takeBack(m *Message) {
	r := &e.recv
	if m.endpoint != e || r.lives[m.slot] != m.life {
		return
	}
	r.lives[m.slot]++
	r.stats.lent--
	m.Data, m.endpoint = nil, nil
	r.giveBack(e, m.slot)
}

// giveBack posts a buffer, together with others.
func (r *receiver) giveBack(e *Endpoint, slot uint32) {
	r.returned = append(r.returned, r.requests[slot])
	if len(r.returned) >= r.enough {
		r.post(e)
	}
}

// post posts the returned buffers. If that fails, the queue pair or the device has failed, and the
// next receive returns the error.
func (r *receiver) post(e *Endpoint) {
	_ = e.qp.PostRecv(r.returned)
	r.returned = r.returned[:0]
}
