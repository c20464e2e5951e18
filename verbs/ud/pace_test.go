// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
)

// paced returns a pace whose clock advances when it sleeps.
func paced(o Options, clock *time.Duration) *pace {
	p := newPace(&o)
	p.now = func() time.Duration { return *clock }
	p.sleep = func(ctx, _ context.Context, d time.Duration) error {
		*clock += d
		return ctx.Err()
	}
	return p
}

func messagesOf(n, size int) []Message {
	list := make([]Message, n)
	for i := range list {
		list[i].Data = make([]byte, size)
	}
	return list
}

// TestPace checks that the rate is independent of the batches, in messages and in bytes, and that unused time does not
// accumulate.
func TestPace(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		o           Options
		batch, size int
		each        time.Duration
	}{
		{Options{Rate: 1000}, 1, 10, time.Millisecond},
		{Options{Rate: 1000}, 300, 10, time.Millisecond},
		{Options{Rate: 300_000}, 64, 10, time.Second / 300_000},
		{Options{ByteRate: 1_000_000}, 16, 500, 500 * time.Microsecond},
		{Options{ByteRate: 3_000_000_000}, 64, 1000, time.Second / 3_000_000},
		{Options{Rate: 1000, ByteRate: 1_000_000}, 7, 4000, 4 * time.Millisecond}, // the slower one
		{Options{Rate: 1000, ByteRate: 1_000_000}, 7, 1, time.Millisecond},
	} {
		var clock time.Duration
		p := paced(row.o, &clock)
		const all = 30_000
		batch := messagesOf(row.batch, row.size)
		for phase := range 2 {
			start := clock
			for sent := 0; sent < all; {
				n, err := p.await(t.Context(), t.Context(), batch[:min(row.batch, all-sent)], true)
				if err != nil || n < 1 {
					t.Fatalf("%+v: got %d, %v", row, n, err)
				}
				sent += n
				if most := int((clock-start+paceAhead)/row.each) + 2; sent > most+most/100 {
					t.Fatalf("%+v: got %d messages after %v", row, sent, clock-start)
				}
			}
			if least, took := all*row.each-paceAhead-row.each, clock-start; took < least*99/100 || took > least*101/100+paceAhead {
				t.Errorf("%+v: got %d messages in %v, want about %v", row, all, took, least)
			}
			if phase == 0 {
				clock += time.Hour // unused
			}
		}
	}
}

// TestPaceWithoutWaiting checks that no rate means no pace, that a call that must not wait is refused, and that a
// context ends the wait.
func TestPaceWithoutWaiting(t *testing.T) {
	if p := newPace(&Options{}); p != nil {
		t.Error("got a pace without a rate")
	}
	if n, err := (*pace)(nil).await(t.Context(), t.Context(), messagesOf(1000, 1), false); n != 1000 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	var clock time.Duration
	p := paced(Options{Rate: 10}, &clock)
	if n, err := p.await(t.Context(), t.Context(), messagesOf(2, 1), false); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := p.await(t.Context(), t.Context(), messagesOf(1, 1), false); !errors.Is(err, verbs.ErrQueueFull) {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.await(ended, t.Context(), messagesOf(1, 1), true); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for _, err := range []error{sleep(ended, t.Context(), time.Hour), sleep(t.Context(), ended, time.Hour)} {
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
