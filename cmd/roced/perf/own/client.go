// SPDX-License-Identifier: Apache-2.0

package own

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/options"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/cmd/roced/perf/traffic"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// Client measures against one server.
type Client struct {
	*meet.Control
	device   *card.Device
	endpoint *card.Endpoint
	peer     ud.Addr
	options  *options.Options
	report   report.Report
}

// RunClient runs all tests and prints the results, even if some tests failed.
func RunClient(ctx context.Context, d *card.Device, namespace string, o *options.Options) (err error) {
	for _, size := range o.Sizes {
		if err := d.CheckSize(size); err != nil {
			return err
		}
	}
	conn, err := meet.Dial(ctx, d, namespace, o.Host, o.TCPPort, "roced perf -d DEVICE")
	if err != nil {
		return err
	}
	c := &Client{Control: meet.NewControl(ctx, conn, "roced perf"), device: d, options: o, report: report.NewReport(o)}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.meet(); err != nil {
		return err
	}
	return errors.Join(c.measureAll(), c.report.Print(o))
}

// meet exchanges addresses and sends the request to the server.
func (c *Client) meet() error {
	local, err := c.LocalAddr()
	if err != nil {
		return err
	}
	source, err := c.device.ChooseGID(c.options.GIDIndex, local, verbs.GID{})
	if err != nil {
		return err
	}
	if c.endpoint, err = card.OpenEndpoint(c.device, traffic.EndpointOptions(source.GID, !c.options.Waiting.Sleep)); err != nil {
		return err
	}
	err = c.Exchange(func(conn io.ReadWriter) error {
		peer, err := meet.Introduce(conn, terms(c.device, c.options.Sizes), meet.Destination{QPN: c.endpoint.QPN(), GID: source.GID}, 1)
		if err != nil {
			return err
		}
		c.peer = peer.Addr()
		return c.endpoint.Aim(c.Context(), c.peer)
	})
	if err != nil {
		return err
	}
	return c.request(source)
}

// request sends the list of tests and checks the server's response.
func (c *Client) request(source verbs.GIDEntry) error {
	err := c.Send(protocol.Request{Version: protocol.Version, Tests: c.options.Tests()})
	if err != nil {
		return err
	}
	var g protocol.Greeting
	if err := c.ReceiveSoon(&g); err != nil {
		return err
	}
	if g.Error != "" {
		return fmt.Errorf("the server rejects the request: %s", meet.Printable(g.Error))
	}
	c.report.Client = c.device.Side(source.GID.Addr().String())
	c.report.Server, err = g.Checked()
	return err
}

// Close closes the endpoint, if it is open, and the connection.
func (c *Client) Close() (err error) {
	if c.endpoint != nil {
		err = c.endpoint.Close()
	}
	return errors.Join(err, c.Control.Close())
}

func (c *Client) measureAll() error {
	for _, t := range c.options.Tests() {
		if err := c.measure(t); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", t.Kind, t.Size, c.serverError(err))
		}
	}
	return nil
}

// serverError returns the error that the server sent before it closed the connection, or else err.
func (c *Client) serverError(err error) error {
	var o protocol.Outcome
	if errors.Is(err, meet.ErrPeerGone) && c.Receive(c.Context(), &o) == nil && o.Error != "" {
		return serverFailed(o)
	}
	return err
}

func serverFailed(o protocol.Outcome) error {
	return fmt.Errorf("the server failed: %s", meet.Printable(o.Error))
}

func (c *Client) measure(t protocol.Test) error {
	var ready protocol.Turn
	if err := c.ReceiveSoon(&ready); err != nil {
		return err
	}
	p := cli.StartProgress(c.options.ErrOut, fmt.Sprintf("%s of %d bytes", t.Kind, t.Size))
	defer p.End()
	if t.Kind == protocol.Latency {
		return c.measureLatency(t, p)
	}
	return c.measureBandwidth(t, p)
}

func (c *Client) measureBandwidth(t protocol.Test, p *cli.Progress) error {
	before, err := c.device.Counters()
	if err != nil {
		return err
	}
	sent, elapsed, err := traffic.SendFor(c.Context(), c.endpoint, c.peer, t, c.options.Duration, p)
	if err != nil {
		return err
	}
	o, err := c.Finish(sent)
	if err == nil {
		err = o.Check(sent, elapsed)
	}
	if err != nil {
		return err
	}
	after, err := c.device.Counters()
	if err != nil {
		return err
	}
	changed := card.Since(before, after)
	result := report.NewBandwidthResult(t.Size, sent, elapsed, o)
	result.InTrains = new(card.Count(changed, "socket", "tx_in_trains"))
	if *result.InTrains == 0 {
		result.NoTrains = traffic.WhyNoTrains(c.device)
	}
	result.AddDrops(card.Losses(changed), o.Drops)
	result.LinkDrops = report.BySide(card.LinkLosses(changed), o.Link)
	c.report.Bandwidth = append(c.report.Bandwidth, result)
	return nil
}

func (c *Client) measureLatency(t protocol.Test, p *cli.Progress) error {
	pinger := &pinger{e: c.endpoint, peer: c.peer, sleep: t.Sleep}
	times, err := pinger.measure(c.Context(), t.Size, c.options.Trips, p)
	if err != nil {
		return err
	}
	if _, err := c.Finish(uint64(pinger.number)); err != nil {
		return err
	}
	c.report.Latency = append(c.report.Latency, report.NewLatencyResult(t.Size, pinger.lost, times))
	return nil
}

// Finish reports the number of messages sent and returns the server's outcome for it. An outcome
// that was sent earlier is an error.
func (c *Client) Finish(sent uint64) (o protocol.Outcome, err error) {
	came, err := c.Early(&o)
	if !came {
		if err := c.Send(protocol.Turn{Sent: sent}); err != nil {
			return o, err
		}
		err = c.ReceiveSoon(&o)
	}
	switch {
	case err != nil:
		return o, err
	case o.Error != "":
		return o, serverFailed(o)
	case came:
		return o, fmt.Errorf("unexpected outcome from the peer: %w", unix.EBADMSG)
	}
	return o, nil
}
