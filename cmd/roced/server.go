package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strconv"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// server answers clients of perf, one after another.
type server struct {
	device   *device
	listener net.Listener
	options  *perfOptions
}

// runServer serves until ctx is done, which is its normal end, or for one client.
func runServer(ctx context.Context, d *device, namespace string, o *perfOptions) (err error) {
	s := &server{device: d, options: o}
	if s.listener, err = listenIn(ctx, namespace, o.tcpPort); err != nil {
		return err
	}
	defer s.listener.Close()
	defer context.AfterFunc(ctx, func() { s.listener.Close() })()
	err = d.announce(o.out, s.listener, "clients", o.gidIndex)
	for err == nil {
		err = s.acceptOne(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if o.once {
			return err
		}
	}
	return err
}

// listenIn listens inside a network namespace.
func listenIn(ctx context.Context, namespace string, port int) (listener net.Listener, err error) {
	err = hca.RunIn(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(port)))
		return err
	})
	return listener, err
}

// announce says who is waited for, and where. A device without an address is an error.
func (d *device) announce(out io.Writer, listener net.Listener, whom string, gidIndex int) error {
	entry, err := d.chooseGID(gidIndex, netip.Addr{}, verbs.GID{})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "waiting for %s on %v: %v\n", whom, listener.Addr(), d.side(entry.GID.Addr().String()))
	return err
}

// acceptOne waits for a client and serves it. What goes wrong with one client does not end
// the server, unless it was there for that one.
func (s *server) acceptOne(ctx context.Context) error {
	conn, err := s.listener.Accept()
	if err != nil {
		return err
	}
	peer := conn.RemoteAddr()
	err = s.serve(ctx, conn)
	if err != nil && ctx.Err() == nil && !s.options.once {
		s.options.log.Error("client failed", "client", peer, "error", err)
		return nil
	}
	return err
}

// session is one client being served.
type session struct {
	*control
	device   *device
	endpoint *endpoint
	source   verbs.GIDEntry
	gidIndex int
	out      io.Writer
}

func (s *server) serve(ctx context.Context, conn net.Conn) (err error) {
	c := &session{control: newControl(ctx, conn, "roced perf"), device: s.device, gidIndex: s.options.gidIndex, out: s.options.out}
	defer func() { err = errors.Join(err, c.Close()) }()
	if c.endpoint, err = newEndpoint(s.device, endpointAttr{depth: perfDepth, size: s.device.mtu, qkey: testQKey}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.endpoint.Close()) }()
	if err := c.exchange(func(conn io.ReadWriter) error { return answer(conn, c.prepare) }); err != nil {
		return err
	}
	r, err := c.greet()
	if err != nil {
		return err
	}
	for _, t := range r.Tests {
		if err := c.serveTest(t); err != nil {
			return fmt.Errorf("%s of %d bytes: %w", t.Kind, t.Size, err)
		}
	}
	return nil
}

// prepare aims at a client, from an address of the IP version that it has.
func (c *session) prepare(peer destination) (own destination, err error) {
	local, err := c.localAddr()
	if err != nil {
		return own, err
	}
	if c.source, err = c.device.chooseGID(c.gidIndex, local, peer.GID); err != nil {
		return own, err
	}
	if err := c.endpoint.aim(c.source.Index, peer.GID, peer.QPN); err != nil {
		return own, err
	}
	return destination{QPN: c.endpoint.qp.Number(), GID: c.source.GID}, nil
}

// greet takes the client's list of tests, or says why not.
func (c *session) greet() (r request, err error) {
	if err := c.receiveSoon(&r); err != nil {
		if errors.Is(err, errPeerGone) {
			return r, fmt.Errorf("%w after the exchange of addresses; is it ibv_ud_pingpong? roced perf answers roced perf", err)
		}
		return r, err
	}
	g := greeting{Server: c.device.side(c.source.GID.Addr().String())}
	if err := r.check(c.device.mtu); err != nil {
		g.Error = err.Error()
		return r, errors.Join(err, c.send(g))
	}
	if err := c.send(g); err != nil {
		return r, err
	}
	_, err = fmt.Fprintf(c.out, "client %v: %d tests\n", c.conn.RemoteAddr(), len(r.Tests))
	return r, err
}

// serveTest counts or echoes until the client says that all was sent, and tells it what came.
func (c *session) serveTest(t test) error {
	before, err := c.device.counters()
	if err != nil {
		return err
	}
	if err := c.send(turn{}); err != nil {
		return err
	}
	o, failed := c.carryOut(t)
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if failed != nil {
		o.Error = failed.Error()
		return errors.Join(failed, c.send(o))
	}
	after, err := c.device.counters()
	if err != nil {
		return err
	}
	changed := since(before, after)
	o.Drops, o.Link = losses(changed), linkLosses(changed)
	if _, err := fmt.Fprintf(c.out, "  %s of %d bytes: %s messages\n", t.Kind, t.Size, grouped(o.Received)); err != nil {
		return err
	}
	return c.send(o)
}

// carryOut runs the server's half of a test until the client's word comes: a goroutine
// waits for that.
func (c *session) carryOut(t test) (o outcome, err error) {
	ctx, stop := context.WithCancel(c.ctx)
	defer stop()
	var last turn
	word := make(chan error, 1)
	go func() {
		word <- c.receive(c.ctx, &last)
		stop()
	}()
	a := arrivals{size: t.Size}
	if t.Kind == latency {
		o.Received, err = echoUntil(ctx, c.endpoint, t)
	} else {
		err = a.countUntil(ctx, c.endpoint, t.Sleep)
	}
	if err == nil {
		err = <-word
	}
	if err == nil && t.Kind == bandwidth {
		err = a.drain(c.ctx, c.endpoint, last.Sent)
		o.Received, o.Elapsed = a.packets, a.elapsed()
	}
	return o, err
}
