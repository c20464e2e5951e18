//go:build linux

package client

import (
	"context"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// GetAsyncEvent implements verbs.Provider. Events are kept by the service. One caller at a time asks it;
// the others wait for their turn.
func (c *Client) GetAsyncEvent(ctx context.Context) (verbs.EventReport, error) {
	select {
	case c.reader <- struct{}{}:
		defer func() { <-c.reader }()
	case <-c.closing:
		return verbs.EventReport{}, verbs.ErrClosed
	case <-ctx.Done():
		return verbs.EventReport{}, ctx.Err()
	}
	if isClosed(c.closing) {
		return verbs.EventReport{}, verbs.ErrClosed
	}
	report, err := exchange(ctx, c, proto.GetAsyncEvent, &proto.None{}, false)
	if err == nil {
		if report.Type == verbs.EventDeviceFatal {
			c.fatalTold.Store(true)
		}
		return report, nil
	}
	if isClosed(c.ended) && !isClosed(c.closing) && !c.fatalTold.Swap(true) {
		return verbs.EventReport{Type: verbs.EventDeviceFatal}, nil
	}
	if ended := ctx.Err(); ended != nil && verbs.KindOf(err) == nil {
		err = ended
	}
	return verbs.EventReport{}, err
}
