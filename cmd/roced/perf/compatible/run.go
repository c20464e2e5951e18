// SPDX-License-Identifier: Apache-2.0

package compatible

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
	"github.com/roced/roced/cmd/roced/perf/options"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/cmd/roced/perf/protocol"
	"github.com/roced/roced/cmd/roced/perf/report"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// perftestRun is one run of perf with one of perftest's programs as its peer.
type perftestRun struct {
	*meet.Control
	device   *card.Device
	options  *options.Options
	test     protocol.Test
	exchange perftest.Conversation
	measured measured
	mtu      verbs.MTU // path MTU of both sides
	local    netip.Addr
	before   []card.Counter
	report   report.Report
}

// measured is the traffic of a measurement: datagrams or connections.
type measured interface {
	// size returns the message size in bytes: the flag's, or else perftest's default.
	size() (int, error)
	// prepare creates the next queue pair and returns its address, which is then sent to the peer.
	prepare(peer *perftest.Keys) (perftest.Keys, error)
	// aim resolves the path to the peer.
	aim() error
	// sees reports whether this side's program takes part in the messages, and so can count them.
	sees() bool
	measure(line *cli.Progress) error
	Close() error
}

// RunPerftest runs one test and prints the result.
func RunPerftest(ctx context.Context, d *card.Device, namespace string, o *options.Options) (err error) {
	r := newRun(d, o)
	if err := d.CheckPathMTU(o.MTU); err != nil {
		return err
	}
	conn, err := r.connect(ctx, namespace)
	if err != nil {
		return err
	}
	r.Control = meet.NewControl(ctx, conn, o.Peer())
	r.Timeout = o.Timeout
	r.exchange = perftest.Conversation{Conn: conn, Client: o.Host != "", Pairs: o.Pairs, Reports: o.Reports(), Terms: r.terms()}
	defer func() { err = errors.Join(r.explainEnd(err), r.measured.Close(), r.Control.Close()) }()
	if err := r.Handshake(r.meet); err != nil {
		return err
	}
	return r.measure()
}

// terms returns the settings that must be equal on both sides, and the number of messages.
func (r *perftestRun) terms() meet.Terms {
	o := r.options
	t := meet.Terms{Program: "perf", Longest: "--sizes", MTU: r.device.MTU, Count: o.Trips}
	t.Flag(o.Mode(), true).Flag("--"+string(o.Kind()), true)
	switch {
	case o.Connects():
		size, _ := r.measured.size() // which returns no error
		t.Value("--op", o.Operation).Value("--sizes", size).Value("--qps", o.Pairs)
	case o.OwnSizes:
		t.Value("--sizes", o.Sizes[0]).Payload = o.Sizes[0]
	}
	return t
}

func newRun(d *card.Device, o *options.Options) *perftestRun {
	r := &perftestRun{device: d, options: o, test: protocol.Test{Kind: o.Kind(), Sleep: o.Waiting.Sleep}, report: report.NewReport(o)}
	r.measured = &datagrams{perftestRun: r}
	if o.Connects() {
		r.measured = &connections{perftestRun: r}
	}
	return r
}

func (r *perftestRun) connect(ctx context.Context, namespace string) (net.Conn, error) {
	o := r.options
	if o.Host != "" {
		return meet.Dial(ctx, r.device, namespace, o.Host, o.TCPPort, o.Peer()+", without -R")
	}
	listener, err := meet.Listen(ctx, namespace, o.TCPPort)
	if err != nil {
		return nil, err
	}
	out := o.Out
	if o.JSON {
		out = o.ErrOut
	}
	whom := o.Either(fmt.Sprintf("%s of perftest %s", o.Program(), perftest.Version))
	if err := meet.Announce(r.device, out, listener.Addr(), whom, o.GIDIndex); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return meet.Accept(ctx, listener)
}

// meet runs the exchange that precedes the messages.
func (r *perftestRun) meet(io.ReadWriter) (err error) {
	if r.local, err = r.LocalAddr(); err != nil {
		return err
	}
	peerMTU, err := r.greet()
	if err != nil {
		return err
	}
	if r.test.Size, err = r.measured.size(); err != nil {
		return err
	}
	if err := r.exchange.Meet(r.measured.prepare); err != nil {
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

// greet negotiates the path MTU: the smaller one of the two sides, each --mtu or the port's.
func (r *perftestRun) greet() (peer verbs.MTU, err error) {
	attr, err := r.device.QueryPort(card.Port)
	if err != nil {
		return 0, err
	}
	own := attr.ActiveMTU
	if r.options.MTU != 0 {
		if own, err = card.ParseMTU(r.options.MTU); err != nil {
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
		return fmt.Errorf("the peer is %v, this side %v: one is IPv4, the other IPv6; choose with perftest's -x, or --gid-index here: %w",
			peer.GID.Addr(), own.GID.Addr(), unix.EAFNOSUPPORT)
	}
	return r.measured.aim()
}

// measure runs the test and prints its report, even if the test failed.
func (r *perftestRun) measure() error {
	line := r.progress()
	err := r.exchange.Terms.ExplainCount(r.measured.measure(line))
	line.End()
	return errors.Join(err, r.report.Print(r.options))
}

// progress returns the progress line. It is nil, which prints nothing, if only the card takes part.
func (r *perftestRun) progress() *cli.Progress {
	if !r.measured.sees() {
		return nil
	}
	return cli.StartProgress(r.options.ErrOut, fmt.Sprintf("%s of %d bytes", r.test.Kind, r.test.Size))
}

// explainEnd adds the likely cause if the peer has closed the connection: usually different flags of the two sides.
func (r *perftestRun) explainEnd(err error) error {
	if !errors.Is(err, meet.ErrPeerGone) {
		return err
	}
	return fmt.Errorf("%w; check the peer's output, and that both sides use the same %s", err, r.options.Shared())
}

// finish completes the exchange after the messages.
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

// describe sets the descriptions of both sides.
func (r *perftestRun) describe(mtu int) {
	own := r.device.Side(r.exchange.Own[0].GID.Addr().String())
	peer := card.Side{Device: r.options.Either("perftest " + perftest.Version), Address: r.exchange.Peer[0].GID.Addr().String(), MTU: mtu}
	r.report.Client, r.report.Server = own, peer
	if !r.exchange.Client {
		r.report.Client, r.report.Server = peer, own
	}
}
