// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// Request makes each queue pair post count requests, with up to Depth outstanding, and returns the
// elapsed time. With a reliable connection the peer has then executed all of them.
func (p *Pairs) Request(ctx context.Context, count uint64, line *cli.Progress) (elapsed time.Duration, err error) {
	ctx, w := watch(ctx, p.options.Timeout)
	defer w.stop()
	start := time.Now()
	for all := count * uint64(len(p.all)); p.done < all; {
		for _, q := range p.all {
			if err := q.fill(p.options.Depth, count); err != nil {
				return 0, err
			}
		}
		before := p.done
		if err := p.reap(ctx, !p.options.Spin); err != nil {
			return 0, err
		}
		line.Add(p.done - before)
		w.feed()
	}
	return time.Since(start), nil
}

// reap waits for completions and counts them.
func (p *Pairs) reap(ctx context.Context, sleep bool) error {
	n, err := p.device.Completions(ctx, p.cq, sleep, p.wcs[:])
	if err != nil {
		return err
	}
	return p.count(p.wcs[:n])
}

func (p *Pairs) count(wcs []verbs.WC) error {
	for i := range wcs {
		wc := &wcs[i]
		q := p.byNumber[wc.QPN]
		if !wc.Opcode.IsRecv() {
			p.done += wc.ID - q.done
			q.done = wc.ID
			continue
		}
		if err := p.arrived(q, wc); err != nil {
			return err
		}
	}
	return nil
}

// watchdog cancels a context when there is no progress for limit.
type watchdog struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc
	limit  time.Duration
}

func watch(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	bark := func() { cancel(fmt.Errorf("no completion for %v: %w", limit, unix.ETIMEDOUT)) }
	return ctx, &watchdog{time.AfterFunc(limit, bark), cancel, limit}
}

// feed records progress.
func (w *watchdog) feed() { w.timer.Reset(w.limit) }

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}
