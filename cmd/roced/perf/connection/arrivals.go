// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Receive waits for messages, sleeping or spinning, and counts them in Received.
func (p *Pairs) Receive(ctx context.Context, sleep bool) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	before := p.Received
	err := p.reap(ctx, sleep)
	if p.Received == before {
		return err
	}
	p.last = time.Now()
	if before == 0 {
		p.first = p.last
	}
	return err
}

// arrived counts a message and replaces its receive.
func (p *Pairs) arrived(q *pair, wc *verbs.WC) error {
	p.Received++
	if size := int(wc.ByteLen); size != p.options.Size {
		return fmt.Errorf("received a message of %d bytes, want %d; use the same -s on both sides: %w", size, p.options.Size, unix.EMSGSIZE)
	}
	return q.replace()
}

// Elapsed returns the time from the first to the last received message.
func (p *Pairs) Elapsed() time.Duration { return p.last.Sub(p.first) }
