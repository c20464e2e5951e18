// SPDX-License-Identifier: Apache-2.0

package own

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

// session serves one client.
type session struct {
	*meet.Control
	device   *card.Device
	endpoint *card.Endpoint
	peer     ud.Addr
	source   verbs.GIDEntry
	gidIndex int
	quiet    time.Duration // time without a message after which the client is dropped
	out      io.Writer
}

func (s *server) serve(ctx context.Context, conn net.Conn) (err error) {
	c := &session{Control: meet.NewControl(ctx, conn, "roced perf"), device: s.device, gidIndex: s.options.GIDIndex, quiet: s.options.Quiet, out: s.options.Out}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.Exchange(func(conn io.ReadWriter) error { return meet.Answer(conn, terms(c.device, nil), 1, c.prepare) }); err != nil {
		return err
	}
	r, err := c.greet()
	if err != nil {
		return err
	}
	for _, t := range r.Tests {
		t.Sleep = t.Sleep || s.options.Waiting.Sleep
		if err := c.serveTest(t); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", t.Kind, t.Size, err)
		}
	}
	return nil
}

// terms returns the terms for the client. They contain no settings, since the request has them. The longest message of
// the request must fit the MTU of both sides.
func terms(d *card.Device, sizes []int) *meet.Terms {
	t := &meet.Terms{Program: "perf", Longest: "--sizes", MTU: d.MTU}
	if len(sizes) > 0 {
		t.Payload = slices.Max(sizes)
	}
	return t
}

// Close closes the endpoint, if it is open, and the connection.
func (c *session) Close() (err error) {
	if c.endpoint != nil {
		err = c.endpoint.Close()
	}
	return errors.Join(err, c.Control.Close())
}

// prepare opens the endpoint for a client, on an address of the client's IP version.
func (c *session) prepare(peer meet.Destination) (own meet.Destination, err error) {
	local, err := c.LocalAddr()
	if err != nil {
		return own, err
	}
	if c.source, err = c.device.ChooseGID(c.gidIndex, local, peer.GID); err != nil {
		return own, err
	}
	if c.endpoint, err = card.OpenEndpoint(c.device, traffic.EndpointOptions(c.source.GID, false)); err != nil {
		return own, err
	}
	c.peer = peer.Addr()
	if err := c.endpoint.Aim(c.Context(), c.peer); err != nil {
		return own, err
	}
	return meet.Destination{QPN: c.endpoint.QPN(), GID: c.source.GID}, nil
}

// greet reads the client's list of tests, and accepts it or returns the reason for the refusal.
func (c *session) greet() (r protocol.Request, err error) {
	if err := c.ReceiveSoon(&r); err != nil {
		if errors.Is(err, meet.ErrPeerGone) {
			return r, fmt.Errorf("%w after the exchange of addresses; the client may be ibv_ud_pingpong: roced perf without --perftest serves only roced perf", err)
		}
		return r, err
	}
	g := protocol.Greeting{Server: c.device.Side(c.source.GID.Addr().String())}
	if err := r.Check(c.device.MTU); err != nil {
		g.Error = err.Error()
		return r, errors.Join(err, c.Send(g))
	}
	if err := c.Send(g); err != nil {
		return r, err
	}
	_, err = fmt.Fprintf(c.out, "client %v: %s\n", c.RemoteAddr(), cli.Several(uint64(len(r.Tests)), "test"))
	return r, err
}

// serveTest counts or echoes messages until the client reports that all are sent, and then sends
// the outcome.
func (c *session) serveTest(t protocol.Test) error {
	if !t.Sleep {
		card.MakeRoomToSpin()
	}
	before, err := c.device.Counters()
	if err != nil {
		return err
	}
	if err := c.Send(protocol.Turn{}); err != nil {
		return err
	}
	o, failed := c.runTest(t)
	if c.Context().Err() != nil {
		return context.Cause(c.Context())
	}
	if failed != nil {
		o.Error = failed.Error()
		return errors.Join(failed, c.Send(o))
	}
	after, err := c.device.Counters()
	if err != nil {
		return err
	}
	changed := card.Since(before, after)
	o.Drops, o.Link = card.Losses(changed), card.LinkLosses(changed)
	if _, err := fmt.Fprintf(c.out, "  %s of %d bytes: %s messages\n", t.Kind, t.Size, cli.Grouped(o.Received)); err != nil {
		return err
	}
	return c.Send(o)
}

// runTest runs the server's half of a test until the client reports its end. A goroutine reads that report.
func (c *session) runTest(t protocol.Test) (o protocol.Outcome, err error) {
	ctx, stop := context.WithCancel(c.Context())
	defer stop()
	var last protocol.Turn
	word := make(chan error, 1)
	go func() {
		word <- c.Receive(c.Context(), &last)
		stop()
	}()
	if t.Kind == protocol.Latency {
		x := newEcho(c.peer, t.Size)
		err = c.watch(ctx, t, &x.packets, func(wait context.Context, sleep bool) error { return x.take(ctx, wait, c.endpoint, sleep) })
		return protocol.Outcome{Received: x.packets}, firstError(word, err)
	}
	a := traffic.Arrivals{Size: t.Size}
	err = c.watch(ctx, t, &a.Packets, func(wait context.Context, sleep bool) error { return a.Take(wait, c.endpoint, sleep) })
	if err = firstError(word, err); err == nil {
		err = a.DrainFor(c.Context(), c.endpoint, last.Sent, drainLimit())
	}
	return protocol.Outcome{Received: a.Packets, Elapsed: a.Elapsed()}, err
}

// drainLimit returns the time limit of a drain. It leaves the server time to respond before the client's ReplyTimeout.
func drainLimit() time.Duration { return meet.ReplyTimeout / 2 }

// watch receives messages until ctx is done.
func (c *session) watch(ctx context.Context, t protocol.Test, taken *uint64, take func(ctx context.Context, sleep bool) error) error {
	w := traffic.Watch{Take: take, Taken: taken, Limit: c.quiet}
	return w.Until(ctx, t.Sleep)
}

// firstError returns the error of a test, or else that of the client's report after it.
func firstError(word <-chan error, err error) error {
	if err != nil {
		return err
	}
	return <-word
}
