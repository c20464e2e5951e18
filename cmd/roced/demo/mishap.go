// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs/ud"
)

// mishap is a message that must be dropped, and the counter that must count it.
type mishap struct {
	what   string
	name   string
	places []string // places that may count it: with XDP, the XDP program is the first
	spoil  func(*ud.Addr)
}

var mishaps = []mishap{
	{"message with an invalid Q_Key, on purpose", "drop_qkey", []string{"engine"}, func(to *ud.Addr) { to.QKey ^= 1 }},
	{"message to a queue pair that does not exist, on purpose", "drop_unknown_qp", []string{"XDP", "engine"}, func(to *ud.Addr) { to.QPN ^= 0x00F000 }},
}

// send sends the message to the destination of the host's last stream, and waits until the receiver
// has counted it.
func (m *mishap) send(ctx context.Context, from, to *host) error {
	if err := m.sendOne(ctx, from); err != nil {
		return fmt.Errorf("%s: %w", m.what, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, card.StallTimeout,
		fmt.Errorf("%s: %s did not count it in %s", m.what, to.name, m.name))
	defer cancel()
	return poll(ctx, func() (bool, error) {
		all, err := to.Counters()
		return slices.ContainsFunc(m.places, func(place string) bool { return card.Count(all, place, m.name) > 0 }), err
	})
}

// poll waits until is returns true, or ctx is done.
func poll(ctx context.Context, is func() (bool, error)) error {
	for {
		so, err := is()
		if err != nil || so {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		time.Sleep(time.Millisecond)
	}
}

func (m *mishap) sendOne(ctx context.Context, from *host) error {
	to := from.peer
	m.spoil(&to)
	if err := from.SendAll(ctx, []ud.Message{{To: to}}); err != nil {
		return err
	}
	return from.Finish(ctx)
}
