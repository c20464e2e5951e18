// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
)

// turns measures round trips. SENDs and WRITEs are exchanged one at a time: each side waits for the message or the
// written byte of the other. A read or an atomic is a round trip.
type turns struct {
	*Pairs
	q     *pair
	wait  func(ctx context.Context, k uint64) error // returns when the message, byte or completion of turn k has arrived
	sent  time.Time                                 // the last request
	trips []time.Duration
}

// Turns makes count round trips and returns their times, each from a request to the next arrival. The first round trip,
// which warms caches, is omitted. begins states whether this side sends first.
func (p *Pairs) Turns(ctx context.Context, begins bool, count uint64, line *cli.Progress) ([]time.Duration, error) {
	ctx, w := watch(ctx, p.options.Timeout)
	defer w.stop()
	t := &turns{Pairs: p, q: p.all[0], trips: make([]time.Duration, 0, count)}
	t.wait = map[Operation]func(context.Context, uint64) error{Send: t.awaitMessage, Write: t.awaitByte, Read: t.awaitDone, Atomic: t.awaitDone, Swap: t.awaitDone}[p.options.Operation]
	steps := [2]func(context.Context, uint64) error{t.request, t.answered}
	if !begins {
		steps[0], steps[1] = steps[1], steps[0]
	}
	for k := uint64(1); k <= count; k++ {
		for _, step := range steps {
			if err := step(ctx, k); err != nil {
				return nil, err
			}
		}
		w.feed()
		line.Add(1)
	}
	return t.trips, t.awaitDone(ctx, count)
}

// request posts request k. The last byte of a WRITE identifies the request.
func (t *turns) request(ctx context.Context, k uint64) error {
	if t.q.outstanding() == t.options.Depth {
		if err := t.reap(ctx, !t.options.Spin); err != nil {
			return err
		}
	}
	if t.options.Operation == Write {
		store(&t.mr.Bytes()[t.options.Size-1], byte(k))
	}
	t.sent = time.Now()
	return t.q.post(1)
}

func (t *turns) answered(ctx context.Context, k uint64) error {
	err := t.wait(ctx, k)
	if k > 1 {
		t.trips = append(t.trips, time.Since(t.sent))
	}
	return err
}

func (t *turns) awaitMessage(ctx context.Context, k uint64) (err error) {
	for t.Received < k && err == nil {
		err = t.reap(ctx, !t.options.Spin)
	}
	return err
}

func (t *turns) awaitDone(ctx context.Context, k uint64) (err error) {
	for t.q.done < k && err == nil {
		err = t.reap(ctx, !t.options.Spin)
	}
	return err
}

// memoryPolls is the number of polls of the memory for each poll of the completion queue.
const memoryPolls = 64

// awaitByte waits for the last byte of a WRITE. The other bytes precede it.
func (t *turns) awaitByte(ctx context.Context, k uint64) error {
	last := &t.mr.Bytes()[t.room()+t.options.Size-1]
	for n := 1; load(last) != byte(k); n++ {
		if n%memoryPolls != 0 {
			continue
		}
		if err := t.pollOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

// load reads memory that the card may be writing. A card does not synchronise with its program, so the race detector
// must not check it.
//
//go:norace
//go:noinline
func load(b *byte) byte { return *b }

// store writes memory that the card has read for the previous request. The peer's WRITE, which followed that, orders
// the two, but the race detector does not see it.
//
//go:norace
//go:noinline
func store(b *byte, value byte) { *b = value }

// pollOnce polls completions without waiting, which detects an unreachable peer.
func (t *turns) pollOnce(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	n, err := t.cq.Poll(t.wcs[:])
	for i := 0; i < n && err == nil; i++ {
		err = t.wcs[i].Err()
	}
	if err != nil {
		return err
	}
	return t.count(t.wcs[:n])
}
