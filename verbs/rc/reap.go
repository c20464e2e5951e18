package rc

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
)

// awaitSends waits until done, which is called under mu, is true. Of those who wait, one polls, and tells the
// others when there is something new.
func (s *sender) awaitSends(ctx context.Context, done func() bool) error {
	for {
		turn, err := s.awaitTurn(ctx, done)
		if !turn || err != nil {
			return err
		}
		if err := s.reapSome(ctx); err != nil {
			return err
		}
	}
}

// awaitTurn waits until done is true, or this goroutine holds reaping, and done is false nevertheless: then
// it is to poll.
func (s *sender) awaitTurn(ctx context.Context, done func() bool) (turn bool, err error) {
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
		if turn, err = s.awaitChange(ctx); err != nil {
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
func (s *sender) awaitChange(ctx context.Context) (turn bool, err error) {
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
	case <-s.life.Done():
		return false, ErrClosed
	}
}

// reapSome waits for completions, and settles them. The caller holds reaping, which ends with it.
func (s *sender) reapSome(ctx context.Context) error {
	defer func() { <-s.reaping }()
	n, err := await(ctx, s.cq, s.spin, s.done[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(n)
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
func (s *sender) reap() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tryReap(time.Since(s.begin))
}

// tryReap is reap for a holder of mu.
func (s *sender) tryReap(now time.Duration) error {
	s.looked, s.lookedAt = s.posted, now
	select {
	case s.reaping <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-s.reaping }()
	n, err := s.cq.Poll(s.done[:])
	s.settle(n)
	return err
}

// settle processes n completions. The caller holds reaping and mu.
func (s *sender) settle(n int) {
	for i := range s.done[:n] {
		wc := &s.done[i]
		s.reaped = max(s.reaped, wc.ID)
		place := int(wc.ID % s.depth)
		at := &s.slots[place]
		if wc.Status != verbs.WCSuccess {
			s.failed(wc, at)
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
func (s *sender) failed(wc *verbs.WC, at *slot) {
	if s.broken == 0 {
		s.broken = wc.ID
	}
	if wc.Status == verbs.WCWRFlushErr {
		s.ending.flushed()
		return
	}
	s.ending.set(&RequestError{at.opcode, at.length, at.remote, wc.Err()})
}

func (s *sender) hasRoom() bool {
	return s.posted-s.reaped < s.depth || s.ending.down.Err() != nil
}

// awaitDone waits until a request, and all before it, have been carried out.
func (s *sender) awaitDone(ctx context.Context, number uint64) error {
	if err := s.awaitSends(ctx, func() bool { return s.reaped >= number }); err != nil {
		return err
	}
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if broken == 0 || broken > number {
		return nil
	}
	if err := s.ending.await(ctx); err != nil {
		return err
	}
	return s.ending.behind(broken == number)
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
	return c.explain(c.send.awaitDone(ctx, last))
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
	err = s.tryReap(time.Since(s.begin))
	if s.broken > 0 {
		return s.broken - 1, int(s.posted - s.reaped), c.explain(s.ending.behind(true))
	}
	return s.reaped, int(s.posted - s.reaped), c.explain(err)
}

// flushedBy is why receives were flushed: a request of this side, or what the peer has done. The card flushes
// both queues, so the wait ends.
func (s *sender) flushedBy(ctx context.Context) error {
	if cause := s.ending.cause(); cause != nil && cause != ErrAborted {
		return cause
	}
	if err := s.awaitSends(ctx, func() bool { return s.posted == s.reaped }); err != nil {
		return err
	}
	s.ending.flushed()
	if err := s.ending.await(ctx); err != nil {
		return err
	}
	return s.ending.cause()
}
