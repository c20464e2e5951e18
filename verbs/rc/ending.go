// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
)

// ending is the end of a connection and its reason.
type ending struct {
	down   context.Context // done when the connection has ended
	cancel context.CancelFunc

	mu      sync.Mutex
	reason  error
	waiting bool   // the reason is ErrAborted unless a more specific one is reported within eventPause
	broken  uint64 // number of the first failed request; 0: none
}

// eventPause is the maximum delay of the event that reports why requests were flushed.
const eventPause = 20 * time.Millisecond

func (e *ending) init() { e.down, e.cancel = context.WithCancel(context.Background()) }

// set ends the connection. It sets the reason, unless there is one other than ErrAborted.
func (e *ending) set(reason error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason == nil || e.reason == ErrAborted {
		e.reason = reason
	}
	e.cancel()
}

// flushed records that a request was flushed: the connection has ended, and the reason is known, or will be soon.
func (e *ending) flushed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason == nil && !e.waiting {
		e.waiting = true
		time.AfterFunc(eventPause, func() { e.set(ErrAborted) })
	}
}

// fail records a failed request. The first one, unless it was only flushed, is the reason for the end of the
// connection.
func (e *ending) fail(wc *verbs.WC, at *slot) {
	e.mu.Lock()
	if e.broken == 0 {
		e.broken = wc.ID
	}
	e.mu.Unlock()
	if wc.Status == verbs.WCWRFlushErr {
		e.flushed()
		return
	}
	e.set(&RequestError{at.opcode, at.length, at.remote, wc.Err()})
}

// firstBroken returns the number of the first failed request, or 0.
func (e *ending) firstBroken() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.broken
}

// cause returns the reason why the connection has ended; nil if it has not.
func (e *ending) cause() error {
	if e.down.Err() == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reason
}

// await waits until the connection has ended and the reason is known.
func (e *ending) await(ctx context.Context) error {
	select {
	case <-e.down.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outcome returns the error of a completed request, or nil. If the request failed, it waits for the reason.
func (e *ending) outcome(ctx context.Context, number uint64) error {
	broken := e.firstBroken()
	if broken == 0 || broken > number {
		return nil
	}
	if err := e.await(ctx); err != nil {
		return err
	}
	return e.ofRequest(broken == number)
}

// ofRequest returns the error of a failed request. first is true for the first failed request, and false for a later
// one.
func (e *ending) ofRequest(first bool) error {
	cause := e.cause()
	var request *RequestError
	if !first && errors.As(cause, &request) {
		return fmt.Errorf("flushed behind another request: %w", cause)
	}
	return cause
}
