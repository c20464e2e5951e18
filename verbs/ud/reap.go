package ud

import (
	"context"
	"errors"
	"fmt"

	"github.com/roced/roced/verbs"
)

// hasRoom reports whether a caller need not wait: a message can be posted, or there is an error to
// return.
func (s *sender) hasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed != nil || s.posted-s.reaped < s.depth
}

// awaitSends waits for completions of sends until done says that there are enough. Then it calls
// then, if there is one, while it still holds reaping.
func (e *Endpoint) awaitSends(ctx context.Context, done func() bool, then func() error) error {
	s := &e.send
	select {
	case s.reaping <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.life.Done():
		return ErrClosed
	}
	defer func() { <-s.reaping }()
	for !done() {
		n, err := await(ctx, e.sendCQ, e.options.Spin, s.done[:])
		s.mu.Lock()
		s.settle(n)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	if then == nil {
		return nil
	}
	return then()
}

// reap takes the completions that are there, unless another goroutine is doing so.
func (e *Endpoint) reap() error {
	e.send.mu.Lock()
	defer e.send.mu.Unlock()
	return e.tryReap()
}

// tryReap is reap for a holder of mu.
func (e *Endpoint) tryReap() error {
	s := &e.send
	select {
	case s.reaping <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-s.reaping }()
	n, err := e.sendCQ.Poll(s.done[:])
	s.settle(n)
	return err
}

// settle processes n completions. The caller holds reaping and mu.
func (s *sender) settle(n int) {
	for i := range s.done[:n] {
		wc := &s.done[i]
		s.reaped = max(s.reaped, wc.ID)
		if wc.Status != verbs.WCSuccess {
			s.fail(wc)
		}
	}
}

// fail records a message that was refused, or was queued behind a refused one.
func (s *sender) fail(wc *verbs.WC) {
	s.lost++
	if s.failed != nil {
		s.failed.Lost++
		return
	}
	s.failed = &SendError{To: s.places[wc.ID%s.depth], Err: wc.Err()}
}

// mend restarts the queue after a refused message, once all behind it have been flushed. One caller
// gets the message's error.
func (e *Endpoint) mend(ctx context.Context) error {
	return e.awaitSends(ctx, e.send.allSettled, e.restart)
}

// restart takes the queue pair out of SQE, and gives the error of the message that led there. In
// states other than SQE and RTS nothing can be sent any more, so every later call gets the error.
func (e *Endpoint) restart() error {
	if !e.send.hasFailed() {
		return nil
	}
	attr, _, err := e.qp.Query()
	if err == nil && attr.State == verbs.QPStateSQE {
		err = e.qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateSQE}, verbs.QPAttrState|verbs.QPAttrCurState)
	}
	works := err == nil && (attr.State == verbs.QPStateSQE || attr.State == verbs.QPStateRTS)
	e.lastLook.Store(-int64(portPause)) // the port's MTU may have changed
	return errors.Join(fmt.Errorf("send: %w", e.send.takeFailed(works)), err)
}

func (s *sender) takeFailed(forget bool) *SendError {
	s.mu.Lock()
	defer s.mu.Unlock()
	failed := s.failed
	if forget {
		s.failed = nil
	}
	return failed
}

// allSettled reports whether nothing is outstanding, or another goroutine has mended the queue.
func (s *sender) allSettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil || s.posted == s.reaped
}

// Flush waits until all sent messages have left the endpoint. If the card refused one, it returns a
// *SendError.
func (e *Endpoint) Flush(ctx context.Context) error {
	if e == nil {
		return fmt.Errorf("flush: %w", errNil)
	}
	for {
		if err := e.qp.Drain(ctx); err != nil {
			return e.explain(err)
		}
		attr, _, err := e.qp.Query()
		if err != nil {
			return e.explain(err)
		}
		if attr.State == verbs.QPStateRTS {
			return e.explain(e.reap())
		}
		if err := e.awaitSends(ctx, e.send.hasFailed, nil); err != nil {
			return e.explain(err)
		}
		if err := e.mend(ctx); err != nil {
			return e.explain(err)
		}
	}
}

func (s *sender) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed != nil
}
