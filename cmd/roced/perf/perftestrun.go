package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// perftestRun is one run of perf with one of perftest's programs as its peer.
type perftestRun struct {
	*meet.Control
	device   *card.Device
	options  *options
	test     test
	exchange perftest.Conversation
	traffic  traffic
	mtu      verbs.MTU // of the path, for both
	local    netip.Addr
	before   []card.Counter
	report   report
}

// traffic is what is measured: datagrams, or what goes over connections.
type traffic interface {
	// size is that of the messages: what was asked for, else what perftest takes by itself.
	size() (int, error)
	// prepare makes the next queue pair, before the peer learns its address.
	prepare(peer *perftest.Keys) (perftest.Keys, error)
	// aim has messages go where the peer receives.
	aim() error
	measure(line *cli.Progress) error
	Close() error
}

// runPerftest measures, and prints what was measured.
func runPerftest(ctx context.Context, d *card.Device, namespace string, o *options) (err error) {
	r := &perftestRun{device: d, options: o, test: test{Kind: o.kind(), Sleep: o.waiting.Sleep}, report: newReport(o)}
	r.traffic = &datagrams{perftestRun: r}
	if o.connects() {
		r.traffic = &connections{perftestRun: r}
	}
	conn, err := r.connect(ctx, namespace)
	if err != nil {
		return err
	}
	r.Control = meet.NewControl(ctx, conn, o.program())
	r.Timeout = o.timeout
	r.exchange = perftest.Conversation{Conn: conn, Client: o.Host != "", Pairs: o.pairs, Reports: o.reports()}
	defer func() { err = errors.Join(err, r.traffic.Close(), r.Control.Close()) }()
	if err := r.Handshake(r.meet); err != nil {
		return err
	}
	return r.measure()
}

func (r *perftestRun) connect(ctx context.Context, namespace string) (net.Conn, error) {
	o := r.options
	if o.Host != "" {
		return meet.Dial(ctx, namespace, o.Host, o.TCPPort, o.program()+", without -R")
	}
	listener, err := meet.Listen(ctx, namespace, o.TCPPort)
	if err != nil {
		return nil, err
	}
	out := o.out
	if o.json {
		out = o.errOut
	}
	whom := o.either(fmt.Sprintf("%s of perftest %s", o.program(), perftest.Version))
	if err := meet.Announce(r.device, out, listener.Addr(), whom, o.GIDIndex); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return meet.Accept(ctx, listener)
}

// meet exchanges all that comes before the messages.
func (r *perftestRun) meet(io.ReadWriter) (err error) {
	if r.local, err = r.LocalAddr(); err != nil {
		return err
	}
	peerMTU, err := r.greet()
	if err != nil {
		return err
	}
	if r.test.Size, err = r.traffic.size(); err != nil {
		return err
	}
	if err := r.exchange.Meet(r.traffic.prepare); err != nil {
		return err
	}
	if err := r.aim(); err != nil {
		return err
	}
	r.describe(peerMTU.Bytes())
	if r.before, err = r.device.Counters(); err != nil {
		return err
	}
	return r.exchange.Prepare()
}

// greet agrees on the path's MTU: the smaller one, of what --mtu says or the port has.
func (r *perftestRun) greet() (peer verbs.MTU, err error) {
	attr, err := r.device.QueryPort(card.Port)
	if err != nil {
		return 0, err
	}
	own := attr.ActiveMTU
	if r.options.mtu != 0 {
		if own, err = card.ParseMTU(r.options.mtu); err != nil {
			return 0, err
		}
	}
	peer, err = r.exchange.Greet(own)
	r.mtu = min(own, peer)
	return peer, err
}

func (r *perftestRun) aim() error {
	own, peer := r.exchange.Own[0], r.exchange.Peer[0]
	if own.GID.IsIPv4() != peer.GID.IsIPv4() {
		return fmt.Errorf("the peer is %v, this side %v: one is IPv4, the other IPv6; perftest's -x, or --gid-index here, chooses: %w",
			peer.GID.Addr(), own.GID.Addr(), unix.EAFNOSUPPORT)
	}
	return r.traffic.aim()
}

// measure prints the report also of what failed, if there is one.
func (r *perftestRun) measure() error {
	line := cli.StartProgress(r.options.errOut, fmt.Sprintf("%s of %d bytes", r.test.Kind, r.test.Size))
	err := r.traffic.measure(line)
	line.End()
	return errors.Join(err, r.report.print(r.options))
}

// finish exchanges the last words.
func (r *perftestRun) finish() error {
	return r.Handshake(func(io.ReadWriter) error {
		if !r.exchange.Client {
			if err := r.exchange.AwaitEnd(); err != nil {
				return err
			}
		}
		return r.exchange.End()
	})
}

// describe fills in who the two sides are.
func (r *perftestRun) describe(mtu int) {
	own := r.device.Side(r.exchange.Own[0].GID.Addr().String())
	peer := card.Side{Device: r.options.either("perftest " + perftest.Version), Address: r.exchange.Peer[0].GID.Addr().String(), MTU: mtu}
	r.report.Client, r.report.Server = own, peer
	if !r.exchange.Client {
		r.report.Client, r.report.Server = peer, own
	}
}
