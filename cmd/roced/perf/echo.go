package perf

import (
	"context"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/verbs"
)

// echoUntil is the server's half: it sends back what comes, until ctx is done.
func echoUntil(ctx context.Context, e *card.Endpoint, t test) (packets uint64, err error) {
	var completions [card.Batch]verbs.WC
	e.Shape(t.Size, verbs.WRSendWithImm)
	for {
		n, err := e.Receive(ctx, t.Sleep, completions[:])
		if ctx.Err() != nil {
			return packets, nil
		}
		if err == nil {
			err = echo(e, completions[:n])
		}
		if err != nil {
			return packets, err
		}
		packets += uint64(n)
	}
}

func echo(e *card.Endpoint, wcs []verbs.WC) error {
	for i := range wcs {
		_, wr := e.SendBuffer(i)
		wr.ImmData = wcs[i].ImmData
	}
	if err := e.PostSends(len(wcs)); err != nil {
		return err
	}
	if err := e.PostRecvs(len(wcs)); err != nil {
		return err
	}
	return e.Reap()
}
