// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
)

// pace limits an endpoint to Options.Rate and Options.ByteRate: a token bucket whose unit is time. A message is due
// when the time of all messages before it has passed. At most paceAhead of unused time is kept.
type pace struct {
	each, eachByte time.Duration // time per message and per byte, in units of paceUnit
	now            func() time.Duration
	sleep          func(ctx, life context.Context, d time.Duration) error

	mu  sync.Mutex
	due time.Duration // time when the next message may be sent
}

// paceAhead is the time whose messages may be sent at once: longer than the delay of a sleep.
const paceAhead = 2 * time.Millisecond

// paceUnit is a fraction of a nanosecond, for sufficient precision of the time per byte.
const paceUnit = 1 << 10

// perUnit returns the time of one message at a rate per second, in units; 0 for rate 0.
func perUnit(rate int) time.Duration {
	if rate == 0 {
		return 0
	}
	return paceUnit * time.Second / time.Duration(rate)
}

// newPace returns nil without limits.
func newPace(o *Options) *pace {
	if o.Rate == 0 && o.ByteRate == 0 {
		return nil
	}
	begin := time.Now()
	return &pace{each: perUnit(o.Rate), eachByte: perUnit(o.ByteRate), now: func() time.Duration { return time.Since(begin) }, sleep: sleep}
}

func sleep(ctx, life context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-life.Done():
		return life.Err()
	}
}

// cost returns the time that a message occupies.
func (p *pace) cost(m *Message) time.Duration {
	return max(p.each, p.eachByte*time.Duration(len(m.Data))) / paceUnit
}

// take returns the number of messages that may be sent now, or, if that is 0, the time until one may.
func (p *pace) take(messages []Message) (n int, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.due = max(p.due, now-paceAhead)
	for n < len(messages) && p.due <= now {
		p.due += p.cost(&messages[n])
		n++
	}
	return n, p.due - now
}

// await returns the number of messages that may be sent, at least 1. If wait is set, it waits until a message is due,
// or until ctx or the endpoint's life ends.
func (p *pace) await(ctx, life context.Context, messages []Message, wait bool) (int, error) {
	if p == nil {
		return len(messages), nil
	}
	for {
		n, due := p.take(messages)
		switch {
		case n > 0:
			return n, nil
		case !wait:
			return 0, fmt.Errorf("send: %w: the next message is due in %v by Options.Rate; try again, or use SendBatch, which waits", verbs.ErrQueueFull, due)
		}
		if err := p.sleep(ctx, life, due); err != nil {
			return 0, err
		}
	}
}
