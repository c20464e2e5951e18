package rc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
)

// receiver is a connection's receiving half.
type receiver struct {
	pool    *pool
	flushed atomic.Bool   // no message comes any more
	waiting chan struct{} // a lock: who waits for messages. The others learn from it that the connection has ended

	mu      sync.Mutex      // of what follows, see doze
	pause   context.Context // nil before the first wait
	cancel  context.CancelFunc
	renewed time.Time
}

// Recv waits for a message until ctx is done. The message is the caller's until its Release. When the
// connection has ended, and what came before has been received, the error is the reason: ErrDisconnected if
// the peer has closed it. ErrKept if the program holds all buffers.
func (c *Conn) Recv(ctx context.Context) (Message, error) {
	if c == nil {
		return Message{}, fmt.Errorf("receive: %w", errNil)
	}
	var one [1]Message
	_, err := c.RecvBatch(ctx, one[:])
	return one[0], err
}

// RecvBatch waits for messages, and takes those that are there, at most 64 and as many as fit. It returns
// their number: at least 1 if the error is nil. Conn.Release returns them together.
func (c *Conn) RecvBatch(ctx context.Context, messages []Message) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("receive: %w", errNil)
	}
	if err := ctx.Err(); err != nil {
		return 0, c.explain(err)
	}
	if len(messages) == 0 {
		return 0, nil
	}
	return c.take(ctx, true, messages)
}

// Poll is RecvBatch, but does not wait: 0 if there are no messages.
func (c *Conn) Poll(messages []Message) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("poll: %w", errNil)
	}
	if len(messages) == 0 {
		return 0, nil
	}
	return c.take(context.Background(), false, messages)
}

// take takes messages; it waits for some if wait is set.
func (c *Conn) take(ctx context.Context, wait bool, messages []Message) (n int, err error) {
	r := &c.recv
	if wait {
		select {
		case r.waiting <- struct{}{}:
			defer func() { <-r.waiting }()
		case <-ctx.Done():
			return 0, c.explain(ctx.Err())
		case <-c.life.Done():
			return 0, ErrClosed
		}
	}
	if r.flushed.Load() {
		return 0, c.explain(c.send.flushedBy(ctx))
	}
	wcs, err := r.pool.borrow()
	if err != nil {
		return 0, c.explain(err)
	}
	done := wcs[:min(len(messages), batch)]
	switch {
	case c.domain.recvs != nil:
		n, err = c.takeShared(ctx, wait, done)
	case !wait:
		n, err = c.recvCQ.Poll(done)
	default:
		n, err = await(ctx, c.recvCQ, c.options.Spin, done)
	}
	n, failed := c.lend(wcs, n, messages)
	switch {
	case n > 0:
		return n, nil // the next call returns the error
	case failed != nil:
		return 0, c.explain(failed)
	case r.flushed.Load():
		return 0, c.explain(c.send.flushedBy(ctx))
	}
	return 0, c.explain(err)
}

// lend makes messages of n completions, and takes their array back.
func (c *Conn) lend(wcs *[batch]verbs.WC, n int, messages []Message) (lent int, failed error) {
	p := c.recv.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range wcs[:n] {
		wc := &wcs[i]
		if wc.Status == verbs.WCSuccess {
			c.recv.fill(&messages[lent], wc)
			lent++
			continue
		}
		if c.recv.flushed.Store(true); wc.Status != verbs.WCWRFlushErr {
			failed = fmt.Errorf("receive: %w", wc.Err())
			c.ending.set(failed)
		}
		if c.domain.recvs != nil {
			p.giveBack(uint32(wc.ID))
		}
	}
	p.spare = append(p.spare, wcs)
	return lent, failed
}

// fill assigns field by field: a composite literal would be built on the stack and copied.
func (r *receiver) fill(m *Message, wc *verbs.WC) {
	p, slot := r.pool, uint32(wc.ID)
	m.Imm, m.HasImm, m.Length = wc.ImmData, wc.Flags&verbs.WCWithImm != 0, int(wc.ByteLen)
	if m.Written = wc.Opcode == verbs.WCRecvRDMAWithImm; m.Written {
		m.Data = nil
	} else {
		m.Data = p.data(slot, wc.ByteLen)
	}
	p.lend(m, slot)
}

// Release returns the buffers of messages, for new messages.
func (c *Conn) Release(messages []Message) {
	if c == nil || c.recv.pool == nil {
		return
	}
	p := c.recv.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range messages {
		p.takeBack(&messages[i])
	}
}

const (
	// sharedPause is after how long a connection without receives of its own looks whether it has ended.
	sharedPause = 100 * time.Millisecond
	// sharedPolls is the same for one that spins: so many polls.
	sharedPolls = 4096
)

// takeShared takes messages that came in receives of a domain. The end of the connection flushes none of
// these, so it is looked for beside them.
func (c *Conn) takeShared(ctx context.Context, wait bool, wcs []verbs.WC) (n int, err error) {
	for {
		over := c.send.over()
		switch {
		case over != nil || !wait:
			n, err = c.recvCQ.Poll(wcs)
		case c.options.Spin:
			n, err = c.spin(ctx, wcs)
		default:
			n, err = c.doze(ctx, wcs)
		}
		switch {
		case n > 0 || err != nil:
			return n, err
		case over != nil:
			c.recv.flushed.Store(true)
			return 0, over
		case !wait:
			return 0, nil
		}
		if err := c.lookForEnd(); err != nil {
			return 0, err
		}
	}
}

// spin polls for a while.
func (c *Conn) spin(ctx context.Context, wcs []verbs.WC) (n int, err error) {
	for polls := 0; polls < sharedPolls && n == 0 && err == nil; polls++ {
		if n, err = c.recvCQ.Poll(wcs); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	return n, err
}

// doze waits for messages for a while, or until the connection has ended.
func (c *Conn) doze(ctx context.Context, wcs []verbs.WC) (int, error) {
	some, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.recv.patience(c.ending.down), cancel)()
	n, err := c.recvCQ.Wait(some, wcs)
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = nil
	}
	return n, err
}

// patience ends a wait after sharedPause, or half of it, or when the connection has ended. It serves many
// waits: a timer for each would wake a thread of the runtime.
func (r *receiver) patience(down context.Context) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.pause == nil || now.Sub(r.renewed) > sharedPause/2 {
		if r.pause != nil {
			r.cancel()
		}
		r.pause, r.cancel = context.WithTimeout(down, sharedPause)
		r.renewed = now
	}
	return r.pause
}

// lookForEnd looks whether a request has failed, or one of the peer's has ended the connection.
func (c *Conn) lookForEnd() error {
	if err := c.send.reap(); err != nil || c.ending.down.Err() != nil {
		return err
	}
	attr, _, err := c.qp.Query()
	if err == nil && attr.State == verbs.QPStateErr {
		c.ending.set(ErrAborted)
	}
	return err
}

// discard gives the receives of messages that nobody has taken back to the domain.
func (r *receiver) discard(c *Conn) {
	if r.pool == nil {
		return
	}
	var wcs [batch]verbs.WC
	for {
		n, err := c.recvCQ.Poll(wcs[:])
		if n == 0 || err != nil {
			return
		}
		r.pool.mu.Lock()
		for i := range wcs[:n] {
			r.pool.giveBack(uint32(wcs[i].ID))
		}
		r.pool.mu.Unlock()
	}
}
