package perf

import (
	"context"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs/ud"
)

// echoUntil is the server's half: it answers the peer with what comes, until ctx is done. An answer
// has the message's immediate data.
func echoUntil(ctx context.Context, e *card.Endpoint, to ud.Addr, t test) (packets uint64, err error) {
	var in [card.Batch]ud.Message
	out := copies(to, t.Size)
	for {
		n, err := e.Receive(ctx, t.Sleep, in[:])
		if ctx.Err() != nil {
			return packets, nil
		}
		for i := range in[:n] {
			out[i].Imm, out[i].HasImm = in[i].Imm, true
		}
		e.Release(in[:n])
		if err == nil {
			err = e.SendAll(ctx, out[:n])
		}
		if err != nil {
			return packets, err
		}
		packets += uint64(n)
	}
}
