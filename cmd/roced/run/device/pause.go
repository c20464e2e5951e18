// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"time"
)

const (
	shortestPause = 100 * time.Millisecond
	longestPause  = 10 * time.Second
)

// pause is the time between attempts to open a card. It doubles after each failure.
type pause struct{ next time.Duration }

func (p *pause) reset() { p.next = 0 }

// wait waits until the pause is over, ctx is done or nudge is signalled.
func (p *pause) wait(ctx context.Context, nudge <-chan struct{}) {
	p.next = min(max(2*p.next, shortestPause), longestPause)
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-nudge:
	case <-ctx.Done():
	}
}
