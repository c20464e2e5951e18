package perf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/perf/perftest"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// perftestRun is one run of perf with perftest's ib_send_bw or ib_send_lat as its peer.
type perftestRun struct {
	*meet.Control
	device   *card.Device
	options  *options
	test     test
	exchange perftest.Conversation
	endpoint *card.Endpoint
	source   verbs.GIDEntry
	local    netip.Addr // of the TCP connection
	before   []card.Counter
	report   report
}

// runPerftest measures, and prints what was measured.
func runPerftest(ctx context.Context, d *card.Device, namespace string, o *options) (err error) {
	r := &perftestRun{device: d, options: o, test: test{Kind: o.kind(), Sleep: o.sleep}, report: newReport(o)}
	conn, err := r.connect(ctx, namespace)
	if err != nil {
		return err
	}
	r.Control = meet.NewControl(ctx, conn, r.binary())
	r.Timeout = o.timeout
	r.exchange = perftest.Conversation{Conn: conn, Client: o.Host != ""}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.Handshake(r.meet); err != nil {
		return err
	}
	return r.measure()
}

// binary is the program at the other end, as it has to be called.
func (r *perftestRun) binary() string {
	if r.test.Kind == latency {
		return "ib_send_lat -c UD"
	}
	return "ib_send_bw -c UD"
}

func (r *perftestRun) connect(ctx context.Context, namespace string) (net.Conn, error) {
	o := r.options
	if o.Host != "" {
		return meet.Dial(ctx, namespace, o.Host, o.TCPPort, r.binary()+", without -R")
	}
	listener, err := meet.Listen(ctx, namespace, o.TCPPort)
	if err != nil {
		return nil, err
	}
	out := o.out
	if o.json {
		out = o.errOut
	}
	whom := fmt.Sprintf("%s of perftest %s", r.binary(), perftest.Version)
	if err := meet.Announce(r.device, out, listener.Addr(), whom, o.GIDIndex); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return meet.Accept(ctx, listener)
}

// Close detaches, and leaves the group.
func (r *perftestRun) Close() (err error) {
	if r.endpoint != nil {
		err = r.endpoint.Close()
	}
	return errors.Join(err, r.Control.Close())
}

// meet exchanges all that comes before the messages.
func (r *perftestRun) meet(io.ReadWriter) (err error) {
	if r.local, err = r.LocalAddr(); err != nil {
		return err
	}
	attr, err := r.device.QueryPort(card.Port)
	if err != nil {
		return err
	}
	peerMTU, err := r.exchange.Greet(attr.ActiveMTU)
	if err != nil {
		return err
	}
	if r.test.Size, err = r.size(min(r.device.MTU, peerMTU.Bytes())); err != nil {
		return err
	}
	if err := r.exchange.Meet(r.prepare); err != nil {
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

// size is what was asked for, else what perftest takes by itself.
func (r *perftestRun) size(mtu int) (int, error) {
	switch {
	case r.options.ownSizes:
		return r.options.sizes[0], card.CheckSize(r.options.sizes[0], mtu)
	case r.test.Kind == latency:
		return perftestLatencySize, nil
	}
	return mtu, nil // its 65536 do not fit
}

// perftestLatencySize is ib_send_lat's, in bytes.
const perftestLatencySize = 2

// prepare makes the queue pair, and attaches it to the group, before the peer learns its address.
func (r *perftestRun) prepare(peer *perftest.Keys) (own perftest.Keys, err error) {
	var gid verbs.GID
	if peer != nil {
		gid = peer.GID
	}
	if r.source, err = r.device.ChooseGID(r.options.GIDIndex, r.local, gid); err != nil {
		return own, err
	}
	o := endpointOptions(r.source.GID, !r.options.sleep)
	o.NoLoopback = true
	if r.endpoint, err = card.Listen(r.device, o); err != nil {
		return own, err
	}
	own.QPN, own.GID, own.OutReads = r.endpoint.QPN(), r.source.GID, 1
	if r.options.group == "" {
		return own, nil
	}
	group, err := card.ParseGroup(r.options.group, r.options.Device)
	if err != nil {
		return own, err
	}
	own.QPN, own.GID = verbs.MulticastQPN, verbs.GIDFromAddr(group)
	return own, r.endpoint.Join(group)
}

// sends says whether this side sends: the client, and for latency both.
func (r *perftestRun) sends() bool { return r.exchange.Client || r.test.Kind == latency }

// aim has messages go where the peer receives: its queue pair, or the group it is in.
func (r *perftestRun) aim() error {
	own, peer := r.exchange.Own, r.exchange.Peer
	if own.GID.IsIPv4() != peer.GID.IsIPv4() {
		return fmt.Errorf("the peer is %v, this side %v: one is IPv4, the other IPv6; perftest's -x, or --gid-index here, chooses: %w",
			peer.GID.Addr(), own.GID.Addr(), unix.EAFNOSUPPORT)
	}
	if !r.sends() {
		return nil
	}
	return r.endpoint.Aim(r.Context(), peer.Addr())
}

// describe fills in who the two sides are.
func (r *perftestRun) describe(mtu int) {
	own := r.device.Side(r.exchange.Own.GID.Addr().String())
	peer := card.Side{Device: "perftest " + perftest.Version, Address: r.exchange.Peer.GID.Addr().String(), MTU: mtu}
	r.report.Client, r.report.Server = own, peer
	if !r.exchange.Client {
		r.report.Client, r.report.Server = peer, own
	}
}
