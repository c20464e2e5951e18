// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// receiver is a connection's receiving half.
type receiver struct {
	conn    *Conn
	own     transport.Receives
	buffers *transport.Receives // own, or those of the domain
	flushed atomic.Bool         // no more messages arrive
	waiting chan struct{}       // a lock: the holder waits for messages; the others acquire it later and detect the end

	// Used by awhile; the caller holds waiting.
	pause context.Context
	of    <-chan struct{} // Done of the parent of pause
	end   func()          // ends pause
}

// Recv waits for a message until ctx is done. The message belongs to the caller until its Release. When the connection
// has ended, and all earlier messages have been received, the error is the reason, for example ErrDisconnected if the
// peer has closed the connection. The error is ErrKept if the program holds all buffers.
func (c *Conn) Recv(ctx context.Context) (Message, error) {
	if c == nil {
		return Message{}, fmt.Errorf("receive: %w", errNil)
	}
	var one [1]Message
	_, err := c.RecvBatch(ctx, one[:])
	return one[0], err
}

// RecvBatch waits for messages, and stores those that are available: at most 64, and at most len(messages). It returns
// their number, which is at least 1 if the error is nil. Conn.Release releases them together.
func (c *Conn) RecvBatch(ctx context.Context, messages []Message) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("receive: %w", errNil)
	}
	if err := ctx.Err(); err != nil {
		return 0, c.life.Explain(err)
	}
	if len(messages) == 0 {
		return 0, nil
	}
	r := &c.recv
	select {
	case r.waiting <- struct{}{}:
		defer func() { <-r.waiting }()
	case <-ctx.Done():
		return 0, c.life.Explain(ctx.Err())
	case <-c.life.Done():
		return 0, ErrClosed
	}
	return r.take(ctx, true, messages)
}

// Poll is RecvBatch without waiting: it returns 0 if no messages are available.
func (c *Conn) Poll(messages []Message) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("poll: %w", errNil)
	}
	if len(messages) == 0 {
		return 0, nil
	}
	return c.recv.take(context.Background(), false, messages)
}

// Release releases messages: their buffers can be used for new messages.
func (c *Conn) Release(messages []Message) {
	if c == nil || c.recv.buffers == nil {
		return
	}
	b := c.recv.buffers
	b.Return(len(messages), func(i int) transport.Loan { return messages[i].takeLoan(b) })
}

// take receives messages. If wait is true, it waits for at least one, and the caller holds waiting.
func (r *receiver) take(ctx context.Context, wait bool, messages []Message) (n int, err error) {
	c := r.conn
	if r.flushed.Load() {
		return 0, c.life.Explain(r.flushedBy(ctx))
	}
	fetch := func(done []verbs.WC) (int, error) {
		switch {
		case c.domain.recvs != nil:
			return r.fetchShared(ctx, wait, done)
		case wait:
			return transport.Wait(ctx, c.recvCQ, c.options.Spin, done)
		}
		return c.recvCQ.Poll(done)
	}
	var failed error
	taken := 0
	n, err = r.buffers.Take(len(messages), fetch, func(wc *verbs.WC, loan transport.Loan) bool {
		if wc.Status != verbs.WCSuccess {
			failed = r.fail(wc)
			return false
		}
		messages[taken].receive(r.buffers, wc, loan)
		taken++
		return true
	})
	switch {
	case n > 0:
		return n, nil // the next call returns the error
	case failed != nil:
		err = failed
	case r.flushed.Load():
		err = r.flushedBy(ctx)
	}
	return 0, c.life.Explain(err)
}

// fail records a failed or flushed receive, and returns the error of a failed one.
func (r *receiver) fail(wc *verbs.WC) error {
	r.flushed.Store(true)
	if wc.Status == verbs.WCWRFlushErr {
		return nil
	}
	err := fmt.Errorf("receive: %w", wc.Err())
	r.conn.ending.set(err)
	return err
}

// flushedBy returns the reason why receives were flushed: a failed request of this end, or an action of the peer. It
// waits for the completions of all sends. The card flushes both queues, so this wait ends.
func (r *receiver) flushedBy(ctx context.Context) error {
	e := &r.conn.ending
	if cause := e.cause(); cause != nil && cause != ErrAborted {
		return cause
	}
	if err := r.conn.sends.Await(ctx, func(p transport.Progress) bool { return p.Outstanding() == 0 }); err != nil {
		return err
	}
	e.flushed()
	if err := e.await(ctx); err != nil {
		return err
	}
	return e.cause()
}

const (
	// sharedPause is the interval at which a connection with shared receives checks whether it has ended.
	sharedPause = 100 * time.Millisecond
	// sharedPolls is the corresponding number of polls of a connection that spins.
	sharedPolls = 4096
)

// fetchShared returns completions of messages in receives of a domain. The end of the connection does not flush these
// receives, so fetchShared checks repeatedly whether the connection has ended.
func (r *receiver) fetchShared(ctx context.Context, wait bool, done []verbs.WC) (n int, err error) {
	for {
		over := r.conn.check()
		switch {
		case over != nil || !wait:
			n, err = r.conn.recvCQ.Poll(done)
		case r.conn.options.Spin:
			n, err = r.spin(ctx, done)
		default:
			n, err = r.doze(ctx, done)
		}
		switch {
		case n > 0 || err != nil:
			return n, err
		case over != nil:
			r.flushed.Store(true)
			return 0, over
		case !wait:
			return 0, nil
		}
		if err := r.checkEnded(); err != nil {
			return 0, err
		}
	}
}

// spin polls up to sharedPolls times.
func (r *receiver) spin(ctx context.Context, done []verbs.WC) (n int, err error) {
	for polls := 0; polls < sharedPolls && n == 0 && err == nil; polls++ {
		if n, err = r.conn.recvCQ.Poll(done); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	return n, err
}

// doze waits for messages, at most for sharedPause, or until the connection has ended.
func (r *receiver) doze(ctx context.Context, done []verbs.WC) (int, error) {
	n, err := r.conn.recvCQ.Wait(r.awhile(ctx), done)
	if n == 0 && err != nil && r.pause.Err() != nil {
		return 0, ctx.Err() // nil if only pause has ended
	}
	return n, err
}

// awhile returns a context that ends with ctx, after at most sharedPause, or when the connection ends. It is reused for
// many waits, since creating a context and a timer for each message would be slow.
func (r *receiver) awhile(ctx context.Context) context.Context {
	if r.pause != nil && r.pause.Err() == nil && r.of == ctx.Done() {
		return r.pause
	}
	if r.end != nil {
		r.end()
	}
	pause, cancel := context.WithTimeout(ctx, sharedPause)
	detach := context.AfterFunc(r.conn.ending.down, cancel)
	r.pause, r.of, r.end = pause, ctx.Done(), func() { detach(); cancel() }
	return pause
}

// checkEnded checks whether a request of either end has ended the connection.
func (r *receiver) checkEnded() error {
	c := r.conn
	if err := c.sends.Poll(time.Since(c.begin)); err != nil || c.ending.down.Err() != nil {
		return err
	}
	attr, _, err := c.qp.Query()
	if err == nil && attr.State == verbs.QPStateErr {
		c.ending.set(ErrAborted)
	}
	return err
}

// discard returns the receives of unreceived messages to the domain.
func (r *receiver) discard() {
	if r.buffers == nil {
		return
	}
	for n := 1; n > 0; {
		poll := func(done []verbs.WC) (_ int, err error) {
			n, err = r.conn.recvCQ.Poll(done)
			return n, err
		}
		if _, err := r.buffers.Take(transport.Batch, poll, func(*verbs.WC, transport.Loan) bool { return false }); err != nil {
			return
		}
	}
}
