package mcast

import (
	"context"
	"errors"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
)

// sendAll sends, and waits until all that was begun has been sent.
func (m *member) sendAll(ctx context.Context) error {
	failed := m.sendPaced(ctx)
	ctx = context.WithoutCancel(ctx)
	if err := m.Finish(ctx); err != nil {
		return errors.Join(failed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, card.StallTimeout)
	defer cancel()
	return errors.Join(failed, m.takeArrived(ctx)) // the own ones come before they have left
}

// sendPaced sends at the requested rate, and prints messages that come meanwhile.
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
		if err := m.rest(ctx, start, n, more); err != nil {
			return err
		}
	}
	return nil
}

// due is how many messages to send now.
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

// dueBy is how many messages are to be sent by a time after the first.
func (m *member) dueBy(elapsed time.Duration) uint64 {
	return uint64(elapsed.Seconds()*float64(m.options.rate)) + 1
}

// rest takes what has come, after n messages were sent, and waits until more are due.
func (m *member) rest(ctx context.Context, start time.Time, n int, more bool) error {
	if err := m.takeArrived(ctx); err != nil {
		return err
	}
	if more && m.options.rate > 0 && n < card.Batch {
		return m.restUntil(ctx, start.Add(m.dueAt(m.sent)))
	}
	return nil
}

// dueAt is when a message is to be sent, after the first, which has number 0.
func (m *member) dueAt(number uint64) time.Duration {
	return time.Duration(float64(number) / float64(m.options.rate) * float64(time.Second))
}

// restUntil takes what comes until a time.
func (m *member) restUntil(ctx context.Context, next time.Time) error {
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
		if err := m.take(n); err != nil {
			return err
		}
	}
}

// errDue ends a wait; it is not an error of the run.
var errDue = errors.New("the next message is due")
