// SPDX-License-Identifier: Apache-2.0

package own

import (
	"context"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"github.com/roced/roced/verbs/ud"
)

// echo is the server's half of a latency test: it returns each message to the peer, with the same
// immediate data.
type echo struct {
	packets uint64
	in, out [card.Batch]ud.Message
}

func newEcho(to ud.Addr, size int) *echo { return &echo{out: traffic.Copies(to, size)} }

// take receives messages until wait is done, and returns them to the peer until ctx is done.
func (x *echo) take(ctx, wait context.Context, e *card.Endpoint, sleep bool) error {
	n, err := e.Receive(wait, sleep, x.in[:])
	if err != nil {
		return err
	}
	for i := range x.in[:n] {
		x.out[i].Imm, x.out[i].HasImm = x.in[i].Imm, true
	}
	e.Release(x.in[:n])
	if err := e.SendAll(ctx, x.out[:n]); err != nil {
		return err
	}
	x.packets += uint64(n)
	return nil
}
