// SPDX-License-Identifier: Apache-2.0

package mcast

import (
	"context"
	"errors"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
)

// sendAll sends the messages, waits until they have been sent, and consumes late messages.
func (m *member) sendAll(ctx context.Context) error {
	failed := m.sendPaced(ctx)
	ctx = context.WithoutCancel(ctx)
	if err := m.Finish(ctx); err != nil {
		return errors.Join(failed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, card.StallTimeout)
	defer cancel()
	return errors.Join(failed, m.drain(ctx)) // own messages arrive before their sends complete
}

// sendPaced sends at the requested rate and prints the messages received in the meantime.
func (m *member) sendPaced(ctx context.Context) error {
	start := time.Now()
	for more := true; more; {
		n := m.due(time.Since(start))
		queued, err := m.SendBatch(ctx, m.messages[:n])
		m.sent += uint64(queued)
		if err != nil {
			return m.Explain(ctx, err)
		}
		more = m.options.count == 0 || m.sent < uint64(m.options.count)
		if err := m.pause(ctx, start, n, more); err != nil {
			return err
		}
	}
	return nil
}

// due returns the number of messages to send now.
func (m *member) due(elapsed time.Duration) int {
	n := uint64(card.Batch)
	if m.options.count > 0 {
		n = min(n, uint64(m.options.count)-m.sent)
	}
	if m.options.rate > 0 {
		n = min(n, m.dueBy(elapsed)-m.sent)
	}
	return int(n)
}

// dueBy returns the number of messages due by a time after the first.
func (m *member) dueBy(elapsed time.Duration) uint64 {
	return uint64(elapsed.Seconds()*float64(m.options.rate)) + 1
}

// pause consumes received messages after n were sent, and waits until more are due.
func (m *member) pause(ctx context.Context, start time.Time, n int, more bool) error {
	if err := m.drain(ctx); err != nil {
		return err
	}
	if more && m.options.rate > 0 && n < card.Batch {
		return m.receiveUntil(ctx, start.Add(m.dueAt(m.sent)))
	}
	return nil
}

// dueAt returns the time of a message after the first, which has number 0.
func (m *member) dueAt(number uint64) time.Duration {
	return time.Duration(float64(number) / float64(m.options.rate) * float64(time.Second))
}

// receiveUntil receives messages until a time.
func (m *member) receiveUntil(ctx context.Context, next time.Time) error {
	ctx, cancel := context.WithDeadlineCause(ctx, next, errDue)
	defer cancel()
	for {
		n, err := m.Receive(ctx, true, m.arrived[:])
		if errors.Is(err, errDue) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := m.consume(n); err != nil {
			return err
		}
	}
}

// errDue ends a wait; it is not an error of the run.
var errDue = errors.New("the next message is due")
