package rc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
)

// awaitSends waits until done, which is called under mu, is true. Of those who wait, one polls, and tells the
// others when there is something new.
func (c *Conn) awaitSends(ctx context.Context, done func() bool) error {
	for {
		turn, err := c.awaitTurn(ctx, done)
		if !turn || err != nil {
			return err
		}
		if err := c.reapSome(ctx); err != nil {
			return err
		}
	}
}

// awaitTurn waits until done is true, or this goroutine holds reaping, and done is false nevertheless: then
// it is to poll.
func (c *Conn) awaitTurn(ctx context.Context, done func() bool) (turn bool, err error) {
	s := &c.send
	s.mu.Lock()
	defer s.mu.Unlock()
	for !done() {
		if turn {
			return true, nil
		}
		select {
		case s.reaping <- struct{}{}:
			return true, nil
		default:
		}
		if turn, err = c.awaitChange(ctx); err != nil {
			return false, err
		}
	}
	if turn {
		<-s.reaping
	}
	return false, nil
}

// awaitChange waits until completions have been settled, or reaping is this goroutine's. The caller holds mu,
// which others have meanwhile.
func (c *Conn) awaitChange(ctx context.Context) (turn bool, err error) {
	s := &c.send
	changed := s.changed
	s.waiters++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiters--
	}()
	select {
	case s.reaping <- struct{}{}:
		return true, nil
	case <-changed:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-c.life.Done():
		return false, ErrClosed
	}
}

// reapSome waits for completions, and settles them. The caller holds reaping, which ends with it.
func (c *Conn) reapSome(ctx context.Context) error {
	s := &c.send
	defer func() { <-s.reaping }()
	n, err := await(ctx, c.sendCQ, c.options.Spin, s.done[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	c.settle(n)
	return err
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

// reap takes the completions that are there, unless another goroutine is doing so.
func (c *Conn) reap() error {
	c.send.mu.Lock()
	defer c.send.mu.Unlock()
	return c.tryReap(time.Since(c.begin))
}

// tryReap is reap for a holder of mu.
func (c *Conn) tryReap(now time.Duration) error {
	s := &c.send
	s.looked, s.lookedAt = s.posted, now
	select {
	case s.reaping <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-s.reaping }()
	n, err := c.sendCQ.Poll(s.done[:])
	c.settle(n)
	return err
}

// settle processes n completions. The caller holds reaping and mu.
func (c *Conn) settle(n int) {
	s := &c.send
	for i := range s.done[:n] {
		wc := &s.done[i]
		s.reaped = max(s.reaped, wc.ID)
		place := int(wc.ID % s.depth)
		at := &s.slots[place]
		if wc.Status != verbs.WCSuccess {
			c.failed(wc, at)
			continue
		}
		if at.into != nil {
			memory, _ := s.buffer(place)
			copy(at.into, memory)
			at.into = nil
		}
	}
	if n > 0 && s.waiters > 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// failed takes a request that was not carried out. The first such, unless it was only flushed, is the reason
// for the end of the connection.
func (c *Conn) failed(wc *verbs.WC, at *slot) {
	if c.send.broken == 0 {
		c.send.broken = wc.ID
	}
	if wc.Status == verbs.WCWRFlushErr {
		c.ending.flushed()
		return
	}
	c.ending.set(&RequestError{at.opcode, at.length, at.remote, wc.Err()})
}

func (c *Conn) hasRoom() bool {
	s := &c.send
	return s.posted-s.reaped < s.depth || c.ending.down.Err() != nil
}

// awaitDone waits until a request, and all before it, have been carried out.
func (c *Conn) awaitDone(ctx context.Context, number uint64) error {
	s := &c.send
	if err := c.awaitSends(ctx, func() bool { return s.reaped >= number }); err != nil {
		return err
	}
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if broken == 0 || broken > number {
		return nil
	}
	if err := c.awaitCause(ctx); err != nil {
		return err
	}
	return c.behind(broken == number)
}

// awaitCause waits until it is known why the connection has ended.
func (c *Conn) awaitCause(ctx context.Context) error {
	select {
	case <-c.ending.down.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// behind is the error of a request that was not carried out.
func (c *Conn) behind(itself bool) error {
	cause := c.ending.cause()
	var request *RequestError
	if !itself && errors.As(cause, &request) {
		return fmt.Errorf("not carried out, being behind another request: %w", cause)
	}
	return cause
}

// Flush waits until the peer has acknowledged all that was sent and requested before; of UC, until it has
// left. If it was not carried out, the error is the reason for which the connection has ended.
func (c *Conn) Flush(ctx context.Context) error {
	if c == nil {
		return fmt.Errorf("flush: %w", errNil)
	}
	c.send.mu.Lock()
	last, closed := c.send.posted, c.life.Err() != nil
	c.send.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return c.explain(c.awaitDone(ctx, last))
}

// Done is how many requests, messages among them, have been carried out, and how many are outstanding. It
// looks for completions, and does not wait. Its error is that of Flush.
func (c *Conn) Done() (done uint64, outstanding int, err error) {
	if c == nil {
		return 0, 0, fmt.Errorf("look for completions: %w", errNil)
	}
	s := &c.send
	s.mu.Lock()
	defer s.mu.Unlock()
	err = c.tryReap(time.Since(c.begin))
	if s.broken > 0 {
		return s.broken - 1, int(s.posted - s.reaped), c.explain(c.behind(true))
	}
	return s.reaped, int(s.posted - s.reaped), c.explain(err)
}

// flushedBy is why receives were flushed: a request of this side, or what the peer has done. The card flushes
// both queues, so the wait ends.
func (c *Conn) flushedBy(ctx context.Context) error {
	if cause := c.ending.cause(); cause != nil && cause != ErrAborted {
		return cause
	}
	s := &c.send
	if err := c.awaitSends(ctx, func() bool { return s.posted == s.reaped }); err != nil {
		return err
	}
	c.ending.flushed()
	if err := c.awaitCause(ctx); err != nil {
		return err
	}
	return c.ending.cause()
}
