// SPDX-License-Identifier: Apache-2.0

package compatible

import (
	"context"
	"errors"
	"fmt"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/perf/connection"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"golang.org/x/sys/unix"
)

// watchCard waits until ctx is done, in a test in which only the card takes part. It returns ETIMEDOUT if the card has
// delivered no packet for Options.Quiet. On a service's device the packets of other programs count too.
func (c *connections) watchCard(ctx context.Context) error {
	var delivered uint64
	observe := func(ctx context.Context, _ bool) error {
		<-ctx.Done()
		changed, err := c.changed()
		if err != nil {
			return err
		}
		delivered = card.Count(changed, "engine", "delivered")
		return context.Cause(ctx)
	}
	w := traffic.Watch{Take: observe, Taken: &delivered, Limit: c.options.Quiet}
	err := w.Until(ctx, true)
	if errors.Is(err, unix.ETIMEDOUT) {
		err = fmt.Errorf("no packet of the client was delivered for %v: %w", w.Limit, unix.ETIMEDOUT)
	}
	return c.explainQuiet(err)
}

// explainQuiet adds the card's drops and the flag that may differ to the error of a silent client.
func (c *connections) explainQuiet(err error) error {
	if !errors.Is(err, unix.ETIMEDOUT) {
		return err
	}
	return fmt.Errorf("%w (%s); check that the client (%s) uses the same --op: SENDs are dropped as no_receive with any other", err, c.device.DropsSince(c.before), c.options.Peer())
}

// checkOperation returns EPROTO if the card's counters contradict the result: all bytes of WRITEs must have been
// delivered here, and all bytes of reads sent. UC is not checked, because its client cannot report which messages
// arrived.
func (c *connections) checkOperation(result perftest.Result) error {
	counter := map[connection.Operation]string{connection.Write: "delivered_bytes", connection.Read: "sent_bytes"}[c.options.Operation]
	if counter == "" || !c.options.RC || result.Messages > 1<<40 {
		return nil
	}
	changed, err := c.changed()
	if err != nil {
		return err
	}
	if carried, all := card.Count(changed, "engine", counter), result.Size*result.Messages; carried < all {
		return fmt.Errorf("the client reports %s messages of %d bytes, but the counter %s of this side grew by only %s: it has not measured --op %s; use the same --op on both sides: %w",
			cli.Grouped(result.Messages), result.Size, counter, cli.Grouped(carried), c.options.Operation, unix.EPROTO)
	}
	return nil
}
