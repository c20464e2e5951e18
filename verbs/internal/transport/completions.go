// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"context"
	"time"

	"github.com/roced/roced/verbs"
)

// Wait waits for completions until ctx is done. It sleeps, or polls continuously if spin is true.
func Wait(ctx context.Context, cq *verbs.CQ, spin bool, done []verbs.WC) (n int, err error) {
	if !spin {
		return cq.Wait(ctx, done)
	}
	for n == 0 && err == nil {
		if n, err = cq.Poll(done); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	return n, err
}

// AwaitFree waits until a slot is free, or until SendConfig.Check returns an error, which the next Post then returns.
func (s *Sends) AwaitFree(ctx context.Context) error {
	return s.Await(ctx, func(p Progress) bool { return p.Outstanding() < s.config.Depth || s.config.Check() != nil })
}

// Await waits until done returns true. One of the waiting goroutines polls, and wakes the others when it has settled
// completions.
func (s *Sends) Await(ctx context.Context, done func(Progress) bool) error {
	for {
		polls, err := s.awaitTurn(ctx, done)
		if !polls || err != nil {
			return err
		}
		if err := s.settleSome(ctx); err != nil {
			return err
		}
	}
}

// awaitTurn waits until done returns true, or until it is this goroutine's turn to poll. In the latter case it returns
// true, and the caller holds polling.
func (s *Sends) awaitTurn(ctx context.Context, done func(Progress) bool) (polls bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !done(s.progress) {
		if polls {
			return true, nil
		}
		select {
		case s.polling <- struct{}{}:
			return true, nil
		default:
		}
		if polls, err = s.awaitChange(ctx); err != nil {
			return false, err
		}
	}
	if polls {
		<-s.polling
	}
	return false, nil
}

// awaitChange waits until completions have been settled, or until this goroutine holds polling. It releases mu while
// it waits.
func (s *Sends) awaitChange(ctx context.Context) (polls bool, err error) {
	changed := s.changed
	s.waiting++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.waiting--
	}()
	select {
	case s.polling <- struct{}{}:
		return true, nil
	case <-changed:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-s.config.Life.Done():
		return false, context.Cause(s.config.Life)
	}
}

// settleSome waits for completions and settles them. The caller holds polling, which settleSome releases.
func (s *Sends) settleSome(ctx context.Context) error {
	defer func() { <-s.polling }()
	n, err := Wait(ctx, s.config.CQ, s.config.Spin, s.done[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(n)
	return err
}

// Poll settles the available completions, unless another goroutine is polling. now is the current time, which
// determines when Post polls next.
func (s *Sends) Poll(now time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.poll(now)
}

// poll is Poll for a caller that holds mu.
func (s *Sends) poll(now time.Duration) error {
	s.polled, s.polledAt = s.progress.Posted, now
	select {
	case s.polling <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-s.polling }()
	n, err := s.config.CQ.Poll(s.done[:])
	s.settle(n)
	return err
}

// settle processes n completions. The caller holds polling and mu.
func (s *Sends) settle(n int) {
	for i := range s.done[:n] {
		wc := &s.done[i]
		s.progress.Completed = max(s.progress.Completed, wc.ID)
		s.config.Settle(wc)
	}
	if n > 0 && s.waiting > 0 {
		close(s.changed)
		s.changed = make(chan struct{})
	}
}
