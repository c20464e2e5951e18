package perf

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// depth is how many messages a queue pair of perf can hold each way.
const depth = 1024

// endpointOptions are those of both sides.
func endpointOptions(source verbs.GID, spin bool) ud.Options {
	return ud.Options{QKey: card.TestQKey, RecvDepth: depth, SendDepth: depth, Source: source.Addr(), Spin: spin}
}

// client measures against one server.
type client struct {
	*meet.Control
	device   *card.Device
	endpoint *card.Endpoint
	peer     ud.Addr
	options  *options
	report   report
}

// runClient measures, and prints what was measured, also if not all could be.
func runClient(ctx context.Context, d *card.Device, namespace string, o *options) (err error) {
	for _, size := range o.sizes {
		if err := d.CheckSize(size); err != nil {
			return err
		}
	}
	conn, err := meet.Dial(ctx, namespace, o.Host, o.TCPPort, "roced perf -d DEVICE")
	if err != nil {
		return err
	}
	c := &client{Control: meet.NewControl(ctx, conn, "roced perf"), device: d, options: o, report: newReport(o)}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := c.meet(); err != nil {
		return err
	}
	return errors.Join(c.measureAll(), c.report.print(o))
}

// meet exchanges addresses, and has the server agree.
func (c *client) meet() error {
	local, err := c.LocalAddr()
	if err != nil {
		return err
	}
	source, err := c.device.ChooseGID(c.options.GIDIndex, local, verbs.GID{})
	if err != nil {
		return err
	}
	if c.endpoint, err = card.Listen(c.device, endpointOptions(source.GID, !c.options.waiting.Sleep)); err != nil {
		return err
	}
	err = c.Exchange(func(conn io.ReadWriter) error {
		peer, err := meet.Introduce(conn, meet.Destination{QPN: c.endpoint.QPN(), GID: source.GID}, 1)
		if err != nil {
			return err
		}
		c.peer = peer.Addr()
		return c.endpoint.Aim(c.Context(), c.peer)
	})
	if err != nil {
		return err
	}
	return c.ask(source)
}

// ask says what is to be measured.
func (c *client) ask(source verbs.GIDEntry) error {
	err := c.Send(request{protocolVersion, c.options.tests()})
	if err != nil {
		return err
	}
	var g greeting
	if err := c.ReceiveSoon(&g); err != nil {
		return err
	}
	if g.Error != "" {
		return fmt.Errorf("the server refuses: %s", meet.Printable(g.Error))
	}
	c.report.Client = c.device.Side(source.GID.Addr().String())
	c.report.Server, err = g.checked()
	return err
}

// Close closes the endpoint, if there is one yet, and the connection.
func (c *client) Close() (err error) {
	if c.endpoint != nil {
		err = c.endpoint.Close()
	}
	return errors.Join(err, c.Control.Close())
}

func (c *client) measureAll() error {
	for _, t := range c.options.tests() {
		if err := c.measure(t); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", t.Kind, t.Size, c.lastWord(err))
		}
	}
	return nil
}

// lastWord is what the server said before it closed the connection, if it did, else err.
func (c *client) lastWord(err error) error {
	var o outcome
	if errors.Is(err, meet.ErrPeerGone) && c.Receive(c.Context(), &o) == nil && o.Error != "" {
		return serverFailed(o)
	}
	return err
}

func serverFailed(o outcome) error {
	return fmt.Errorf("the server failed: %s", meet.Printable(o.Error))
}

func (c *client) measure(t test) error {
	var ready turn
	if err := c.ReceiveSoon(&ready); err != nil {
		return err
	}
	p := cli.StartProgress(c.options.errOut, fmt.Sprintf("%s of %d bytes", t.Kind, t.Size))
	defer p.End()
	if t.Kind == latency {
		return c.measureLatency(t, p)
	}
	return c.measureBandwidth(t, p)
}

func (c *client) measureBandwidth(t test, p *cli.Progress) error {
	before, err := c.device.Counters()
	if err != nil {
		return err
	}
	sent, elapsed, err := sendFor(c.Context(), c.endpoint, c.peer, t, c.options.duration, p)
	if err != nil {
		return err
	}
	o, err := c.finish(sent)
	if err == nil {
		err = o.check(sent, elapsed)
	}
	if err != nil {
		return err
	}
	after, err := c.device.Counters()
	if err != nil {
		return err
	}
	changed := card.Since(before, after)
	result := newBandwidthResult(t.Size, sent, elapsed, o)
	result.InTrains = new(card.Count(changed, "socket", "tx_in_trains"))
	if *result.InTrains == 0 {
		result.NoTrains = whyNoTrains(c.device)
	}
	result.addDrops(card.Losses(changed), o.Drops)
	result.LinkDrops = bySide(card.LinkLosses(changed), o.Link)
	c.report.Bandwidth = append(c.report.Bandwidth, result)
	return nil
}

// whyNoTrains is what a card says now; empty if it says nothing.
func whyNoTrains(d *card.Device) string {
	attr, err := d.QueryDevice()
	if err != nil {
		return ""
	}
	return attr.SendReason
}

func (c *client) measureLatency(t test, p *cli.Progress) error {
	pinger := &pinger{e: c.endpoint, peer: c.peer, sleep: t.Sleep}
	times, err := pinger.measure(c.Context(), t.Size, c.options.trips, p)
	if err != nil {
		return err
	}
	if _, err := c.finish(uint64(pinger.number)); err != nil {
		return err
	}
	c.report.Latency = append(c.report.Latency, newLatencyResult(t.Size, pinger.lost, times))
	return nil
}

// finish tells the server that all was sent, and takes what it saw: the answer to that, and nothing
// that was said before.
func (c *client) finish(sent uint64) (o outcome, err error) {
	came, err := c.Early(&o)
	if !came {
		if err := c.Send(turn{sent}); err != nil {
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
		return o, fmt.Errorf("the peer gives an outcome that it was not asked for: %w", unix.EBADMSG)
	}
	return o, nil
}
