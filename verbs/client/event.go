// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// GetAsyncEvent implements provider.Provider. The service queues the events. One caller at a time requests an event;
// the others wait their turn.
func (c *Client) GetAsyncEvent(ctx context.Context) (provider.EventReport, error) {
	select {
	case c.reader <- struct{}{}:
		defer func() { <-c.reader }()
	case <-c.closing:
		return provider.EventReport{}, verbs.ErrClosed
	case <-ctx.Done():
		return provider.EventReport{}, ctx.Err()
	}
	if isClosed(c.closing) {
		return provider.EventReport{}, verbs.ErrClosed
	}
	var report provider.EventReport
	err := c.exchange(ctx, proto.GetAsyncEvent.Untyped, &proto.None{}, &report, false)
	if err == nil {
		if report.Type == verbs.EventDeviceFatal {
			c.fatalTold.Store(true)
		}
		return report, nil
	}
	if isClosed(c.ended) && !isClosed(c.closing) && !c.fatalTold.Swap(true) {
		return provider.EventReport{Type: verbs.EventDeviceFatal}, nil
	}
	if ended := ctx.Err(); ended != nil && verbs.KindOf(err) == nil {
		err = ended
	}
	return provider.EventReport{}, err
}
