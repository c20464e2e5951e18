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

// TestQKey is ibv_ud_pingpong's, and perftest's.
const TestQKey verbs.QKey = 0x11111111

// Batch is how many messages are sent, and taken, at once.
const Batch = 32

// StallTimeout is how long a message may take that takes microseconds.
const StallTimeout = 5 * time.Second

// Endpoint is package ud's, with errors that say what has happened to the device, and to
// the context of the call: its cause.
type Endpoint struct {
	*ud.Endpoint
	Device *Device
	number verbs.QPN
	source netip.Addr // of Options, to be named
}

// OpenEndpoint creates an endpoint for messages as long as the RDMA MTU is now.
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

// MakeRoomToSpin is for a command that spins while it waits. One that sleeps is better without: with
// more threads than processors, each wake-up starts one that finds nothing to do.
func MakeRoomToSpin() { cli.MakeRoom(2) } // for the worker and the command's own goroutine

// QPN is the number of its queue pair.
func (e *Endpoint) QPN() verbs.QPN { return e.number }

// Aim finds the way to a peer, so that the first message there takes no longer than others.
func (e *Endpoint) Aim(ctx context.Context, peer ud.Addr) error {
	ip := peer.IP()
	if e.source.IsValid() && e.source.Is4() != ip.Is4() {
		return fmt.Errorf("address of the peer, %v: %w: the source %v is of the other IP version; choose another --gid-index", ip, verbs.ErrInvalid, e.source)
	}
	if err := e.Resolve(ctx, peer); err != nil {
		return fmt.Errorf("address of the peer, %v: %w", ip, e.Explain(ctx, err))
	}
	return nil
}

// SendAll queues messages, and waits for room if need be.
func (e *Endpoint) SendAll(ctx context.Context, messages []ud.Message) error {
	_, err := e.SendBatch(ctx, messages)
	return e.Explain(ctx, err)
}

// Finish waits until all that was sent has left.
func (e *Endpoint) Finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, StallTimeout, fmt.Errorf("sends do not complete: %w", unix.ETIMEDOUT))
	defer cancel()
	return e.Explain(ctx, e.Flush(ctx))
}

// Receive waits for messages, asleep or spinning, until ctx is done: also when there are always
// some. They are the caller's until Release.
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

// Arrived takes messages that have come, without waiting; else it is Receive.
func (e *Endpoint) Arrived(messages []ud.Message) (int, error) {
	n, err := e.Poll(messages)
	return n, e.Device.explain(err)
}

// Explain gives the cause of a context that has ended, or what has happened to the device.
func (e *Endpoint) Explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return e.Device.explain(err)
}
