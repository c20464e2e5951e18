// SPDX-License-Identifier: Apache-2.0

package card

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// TestQKey is the Q_Key of ibv_ud_pingpong and perftest.
const TestQKey verbs.QKey = 0x11111111

// Batch is the number of messages sent and received at once.
const Batch = 32

// StallTimeout is the time limit of an operation that normally takes microseconds. Only tests on slow machines change it.
var StallTimeout = 5 * time.Second

// Endpoint is an endpoint of package ud whose errors state the failure of the device or the cause of the
// call's context.
type Endpoint struct {
	*ud.Endpoint
	Device *Device
	number verbs.QPN
	source netip.Addr // from Options, for errors
}

// OpenEndpoint opens an endpoint for messages up to the current RDMA MTU.
func OpenEndpoint(d *Device, o ud.Options) (*Endpoint, error) {
	o.MaxMessage = d.MTU
	if o.Spin {
		MakeRoomToSpin()
	}
	e, err := ud.New(d.Context, o)
	if err != nil {
		return nil, d.named(err)
	}
	return &Endpoint{Endpoint: e, Device: d, number: e.LocalAddr().QPN, source: o.Source}, nil
}

// MakeRoomToSpin raises GOMAXPROCS for commands that spin while waiting. Commands that sleep do not call it: with more
// threads than processors, each wake-up would start a thread without work.
func MakeRoomToSpin() { cli.MakeRoom(2) } // the worker and the command's goroutine

// QPN returns the number of the queue pair.
func (e *Endpoint) QPN() verbs.QPN { return e.number }

// Aim resolves the path to a peer, so that the first message is not delayed.
func (e *Endpoint) Aim(ctx context.Context, peer ud.Addr) error {
	ip := peer.IP()
	if e.source.IsValid() && e.source.Is4() != ip.Is4() {
		return fmt.Errorf("address of the peer, %v: %w: the source %v has another IP version; use another --gid-index", ip, verbs.ErrInvalid, e.source)
	}
	if err := e.Resolve(ctx, peer); err != nil {
		return fmt.Errorf("address of the peer, %v: %w", ip, e.Explain(ctx, err))
	}
	return nil
}

// SendAll queues messages. It waits while the send queue is full.
func (e *Endpoint) SendAll(ctx context.Context, messages []ud.Message) error {
	_, err := e.SendBatch(ctx, messages)
	return e.Explain(ctx, err)
}

// Finish waits until all sends are complete.
func (e *Endpoint) Finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, StallTimeout, fmt.Errorf("sends did not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	return e.Explain(ctx, e.Flush(ctx))
}

// Receive waits for messages, sleeping or spinning, until ctx is done, even if messages keep arriving. The
// caller owns the messages until Release.
func (e *Endpoint) Receive(ctx context.Context, sleep bool, messages []ud.Message) (n int, err error) {
	err = ctx.Err()
	if sleep && err == nil {
		n, err = e.RecvBatch(ctx, messages)
	}
	for !sleep && n == 0 && err == nil {
		if n, err = e.Poll(messages); n == 0 && err == nil {
			err = ctx.Err()
		}
	}
	return n, e.Explain(ctx, err)
}

// Arrived is Receive without waiting: it returns messages that have arrived.
func (e *Endpoint) Arrived(messages []ud.Message) (int, error) {
	n, err := e.Poll(messages)
	return n, e.Device.explain(err)
}

// Explain returns the cause of a done context, or the failure of the device.
func (e *Endpoint) Explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return e.Device.explain(err)
}
