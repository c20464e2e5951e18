// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// check reports whether messages can be posted.
func (e *Endpoint) check() error {
	if e.refused.Load() != nil {
		return errRefused
	}
	return nil
}

// settle records a message that was refused, or flushed behind a refused one.
func (e *Endpoint) settle(wc *verbs.WC) {
	if wc.Status == verbs.WCSuccess {
		return
	}
	e.lost.Add(1)
	if refused := e.refused.Load(); refused != nil {
		refused.Lost++
		return
	}
	e.refused.Store(&SendError{To: e.destinations[e.sends.Slot(wc.ID)], Err: wc.Err()})
}

// restart takes the queue pair out of SQE after a refused message, once all messages behind it have been flushed, and
// returns the message's error, to one caller only. In states other than SQE and RTS, no more messages can be sent, and
// all later calls return the error.
func (e *Endpoint) restart(ctx context.Context) error {
	err := e.sends.Await(ctx, func(p transport.Progress) bool { return e.refused.Load() == nil || p.Outstanding() == 0 })
	if err != nil {
		return err
	}
	e.restarting.Lock()
	defer e.restarting.Unlock()
	refused := e.refused.Load()
	settled := false
	e.sends.Do(func(p transport.Progress) { settled = p.Outstanding() == 0 })
	if refused == nil || !settled {
		return nil // another goroutine has restarted the queue pair
	}
	attr, _, err := e.qp.Query()
	if err == nil && attr.State == verbs.QPStateSQE {
		err = e.qp.Modify(&verbs.QPAttr{State: verbs.QPStateRTS, CurState: verbs.QPStateSQE}, verbs.QPAttrState|verbs.QPAttrCurState)
	}
	e.port.readSoon() // its MTU may have changed
	if err == nil && (attr.State == verbs.QPStateSQE || attr.State == verbs.QPStateRTS) {
		e.refused.Store(nil)
		e.restarts.Add(1)
	}
	return errors.Join(fmt.Errorf("send: %w", refused), err)
}

// Flush waits until all queued messages have been sent. If the card refused one, it returns a *SendError.
func (e *Endpoint) Flush(ctx context.Context) error {
	if e == nil {
		return fmt.Errorf("flush: %w", errNil)
	}
	return e.life.Explain(e.flush(ctx))
}

func (e *Endpoint) flush(ctx context.Context) error {
	for {
		before := e.restarts.Load()
		if err := e.qp.Drain(ctx); err != nil {
			return err
		}
		attr, _, err := e.qp.Query()
		if err != nil {
			return err
		}
		if attr.State == verbs.QPStateRTS {
			return e.sends.Poll(time.Since(e.begin))
		}
		err = e.sends.Await(ctx, func(transport.Progress) bool { return e.refused.Load() != nil || e.restarts.Load() != before })
		if err == nil {
			err = e.restart(ctx)
		}
		if err != nil {
			return err
		}
	}
}
