// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"runtime"
	"time"

	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// yieldGap is the interval at which a leader yields. Without a yield for 10 ms, the runtime's monitor would wake every
// 20 µs, and take the leader's P away while it sleeps.
const yieldGap = 5 * time.Millisecond

// One of the goroutines that wait for completions is the leader: it reads the signals of the card in its thread, and
// passes on those for other goroutines. A permanent reader goroutine would be woken first each time, and then wake the
// waiting one.

// Lead implements provider.Leader: it waits, as the leader if there is no other.
func (c *Client) Lead(ctx context.Context, events, closed <-chan struct{}) (over bool) {
	select {
	case c.leading <- struct{}{}:
		c.lead(ctx, events, closed)
		<-c.leading
	case <-events:
	case <-closed:
	case <-c.done:
	case <-ctx.Done():
	}
	return true
}

// lead reads the signals of the card until the caller need not wait any more.
func (c *Client) lead(ctx context.Context, events, closed <-chan struct{}) {
	if now := time.Now(); now.Sub(c.yielded) >= yieldGap {
		c.yielded = now
		runtime.Gosched()
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, c.signals.interrupt)()
	}
	for {
		select {
		case <-events:
			return
		case <-closed:
			return
		case <-c.done:
			return
		case <-ctx.Done():
			return
		default:
		}
		_ = c.signals.raw.Control(c.signals.wait)
		c.signals.take(c.notify)
	}
}

var _ provider.Spinner = (*Client)(nil)

// dozeTime is the maximum time that a program that spins waits.
const dozeTime = time.Millisecond

// Yield implements provider.Spinner.
func (c *Client) Yield() { _, _, _ = unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Doze implements provider.Spinner. The caller leads, if there is no leader.
func (c *Client) Doze(events <-chan struct{}) {
	select {
	case <-events:
		return
	default:
	}
	select {
	case c.leading <- struct{}{}:
		if !isClosed(c.done) {
			c.signals.timeout = int(dozeTime / time.Millisecond)
			_ = c.signals.raw.Control(c.signals.wait)
			c.signals.timeout = forEver
			c.signals.take(c.notify)
		}
		<-c.leading
	default:
		select {
		case <-events:
		case <-c.done:
		case <-time.After(dozeTime):
		}
	}
}

// WakeLeader implements provider.Leader.
func (c *Client) WakeLeader() { c.signals.interrupt() }

// notify wakes a goroutine that waits for a CQ.
func (c *Client) notify(eventID uint64) {
	c.mu.Lock()
	events := c.events[eventID]
	c.mu.Unlock()
	select {
	case events <- struct{}{}: // nil if the queue has been destroyed
	default:
	}
}
