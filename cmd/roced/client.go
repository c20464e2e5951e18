package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// perfDepth is how many messages a queue pair of perf can hold each way.
const perfDepth = 1024

// client measures against one server.
type client struct {
	*control
	device   *device
	endpoint *endpoint
	options  *perfOptions
	report   report
}

// runClient measures, and prints what was measured, also if not all could be.
func runClient(ctx context.Context, d *device, namespace string, o *perfOptions) (err error) {
	for _, size := range o.sizes {
		if err := d.checkSize(size); err != nil {
			return err
		}
	}
	conn, err := dial(ctx, namespace, o.host, o.tcpPort, "roced perf -d DEVICE")
	if err != nil {
		return err
	}
	c := &client{control: newControl(ctx, conn, "roced perf"), device: d, options: o, report: newReport(o)}
	defer func() { err = errors.Join(err, c.Close()) }()
	if c.endpoint, err = newEndpoint(d, endpointAttr{depth: perfDepth, size: d.mtu, qkey: testQKey}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.endpoint.Close()) }()
	if err := c.meet(); err != nil {
		return err
	}
	return errors.Join(c.measureAll(), c.report.print(o))
}

// dial connects from inside a network namespace. Names are looked up outside, and each
// address is dialled by this goroutine alone: one that the net package would start for
// a second address would be in the wrong namespace. The error names the server's command.
func dial(ctx context.Context, namespace, host string, port int, server string) (conn net.Conn, err error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	dialer := net.Dialer{Timeout: replyTimeout}
	var failures error
	for _, address := range found {
		target := net.JoinHostPort(address.Unmap().String(), strconv.Itoa(port))
		err := hca.RunIn(namespace, func() (err error) {
			conn, err = dialer.DialContext(ctx, "tcp", target)
			return err
		})
		if err == nil {
			return conn, nil
		}
		failures = errors.Join(failures, err)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, fmt.Errorf("%w; is the server running there (%s)?", failures, server)
}

// meet exchanges addresses and says what is to be measured.
func (c *client) meet() error {
	local, err := c.localAddr()
	if err != nil {
		return err
	}
	source, err := c.device.chooseGID(c.options.gidIndex, local, verbs.GID{})
	if err != nil {
		return err
	}
	err = c.exchange(func(conn io.ReadWriter) error {
		peer, err := introduce(conn, destination{QPN: c.endpoint.qp.Number(), GID: source.GID})
		if err != nil {
			return err
		}
		return c.endpoint.aim(source.Index, peer.GID, peer.QPN)
	})
	if err != nil {
		return err
	}
	if err := c.send(request{protocolVersion, c.options.tests()}); err != nil {
		return err
	}
	var g greeting
	if err := c.receiveSoon(&g); err != nil {
		return err
	}
	if g.Error != "" {
		return fmt.Errorf("the server refuses: %s", g.Error)
	}
	c.report.Client, c.report.Server = c.device.side(source.GID.Addr().String()), g.Server
	return nil
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
	if errors.Is(err, errPeerGone) && c.receive(c.ctx, &o) == nil && o.Error != "" {
		return serverFailed(o)
	}
	return err
}

func serverFailed(o outcome) error { return fmt.Errorf("the server failed: %s", o.Error) }

func (c *client) measure(t test) error {
	var ready turn
	if err := c.receiveSoon(&ready); err != nil {
		return err
	}
	before, err := c.device.counters()
	if err != nil {
		return err
	}
	p := startProgress(c.options.errOut, fmt.Sprintf("%s of %d bytes", t.Kind, t.Size))
	defer p.end()
	if t.Kind == latency {
		return c.measureLatency(t, p)
	}
	sent, elapsed, err := sendFor(c.ctx, c.endpoint, t, c.options.duration, p)
	if err != nil {
		return err
	}
	o, err := c.finish(sent)
	if err != nil {
		return err
	}
	after, err := c.device.counters()
	if err != nil {
		return err
	}
	changed := since(before, after)
	result := newBandwidthResult(t.Size, sent, elapsed, o)
	result.addDrops(losses(changed), o.Drops)
	result.LinkDrops = bySide(linkLosses(changed), o.Link)
	c.report.Bandwidth = append(c.report.Bandwidth, result)
	return nil
}

func (c *client) measureLatency(t test, p *progress) error {
	pinger := &pinger{e: c.endpoint, sleep: t.Sleep}
	times, err := pinger.measure(c.ctx, t.Size, c.options.trips, p)
	if err != nil {
		return err
	}
	if _, err := c.finish(uint64(pinger.number)); err != nil {
		return err
	}
	c.report.Latency = append(c.report.Latency, newLatencyResult(t.Size, pinger.lost, times))
	return nil
}

// finish tells the server that all was sent, and takes what it saw.
func (c *client) finish(sent uint64) (o outcome, err error) {
	if err := c.send(turn{sent}); err != nil {
		return o, err
	}
	if err := c.receiveSoon(&o); err != nil {
		return o, err
	}
	if o.Error != "" {
		return o, serverFailed(o)
	}
	return o, nil
}
