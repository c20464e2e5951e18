package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// perftestRun is one run of perf with perftest's ib_send_bw or ib_send_lat as its peer.
type perftestRun struct {
	*control
	device     *device
	options    *perfOptions
	test       test
	exchange   perftestExchange
	endpoint   *endpoint
	membership *verbs.Membership // of the group that is received from, nil without
	source     verbs.GIDEntry
	local      netip.Addr // of the TCP connection
	before     []counter
	report     report
}

// runPerftest measures, and prints what was measured.
func runPerftest(ctx context.Context, d *device, namespace string, o *perfOptions) (err error) {
	r := &perftestRun{device: d, options: o, test: test{Kind: o.kind(), Sleep: o.sleep}, report: newReport(o)}
	conn, err := r.connect(ctx, namespace)
	if err != nil {
		return err
	}
	r.control = newControl(ctx, conn, r.binary())
	r.timeout = o.timeout
	r.exchange = perftestExchange{conn: conn, client: o.host != ""}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.handshake(r.meet); err != nil {
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
	if o.host != "" {
		return dial(ctx, namespace, o.host, o.tcpPort, r.binary()+", without -R")
	}
	listener, err := listenIn(ctx, namespace, o.tcpPort)
	if err != nil {
		return nil, err
	}
	out := o.out
	if o.json {
		out = o.errOut
	}
	whom := fmt.Sprintf("%s of perftest %s", r.binary(), perftestVersion)
	if err := r.device.announce(out, listener, whom, o.gidIndex); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return acceptFrom(ctx, listener)
}

// Close detaches, and leaves the group.
func (r *perftestRun) Close() (err error) {
	if r.endpoint != nil {
		err = r.endpoint.Close()
	}
	if r.membership != nil {
		err = errors.Join(err, r.membership.Close())
	}
	return errors.Join(err, r.control.Close())
}

// meet exchanges all that comes before the messages.
func (r *perftestRun) meet(io.ReadWriter) (err error) {
	if r.local, err = r.localAddr(); err != nil {
		return err
	}
	attr, err := r.device.QueryPort(port)
	if err != nil {
		return err
	}
	peerMTU, err := r.exchange.greet(attr.ActiveMTU)
	if err != nil {
		return err
	}
	if r.test.Size, err = r.size(min(r.device.mtu, peerMTU.Bytes())); err != nil {
		return err
	}
	if err := r.exchange.meet(r.prepare); err != nil {
		return err
	}
	if err := r.aim(); err != nil {
		return err
	}
	r.describe(peerMTU.Bytes())
	if r.before, err = r.device.counters(); err != nil {
		return err
	}
	return r.exchange.prepare()
}

// size is what was asked for, else what perftest takes by itself.
func (r *perftestRun) size(mtu int) (int, error) {
	switch {
	case r.options.ownSizes:
		return r.options.sizes[0], checkSize(r.options.sizes[0], mtu)
	case r.test.Kind == latency:
		return perftestLatencySize, nil
	}
	return mtu, nil // its 65536 do not fit
}

// perftestLatencySize is ib_send_lat's, in bytes.
const perftestLatencySize = 2

// prepare makes the queue pair, and has it in the group, before the peer is told of it.
func (r *perftestRun) prepare(peer *perftestKeys) (own perftestKeys, err error) {
	var gid verbs.GID
	if peer != nil {
		gid = peer.GID
	}
	if r.source, err = r.device.chooseGID(r.options.gidIndex, r.local, gid); err != nil {
		return own, err
	}
	r.endpoint, err = newEndpoint(r.device, endpointAttr{depth: perfDepth, size: r.device.mtu, qkey: testQKey, blockSelf: true})
	if err != nil {
		return own, err
	}
	own.QPN, own.GID, own.OutReads = r.endpoint.qp.Number(), r.source.GID, 1
	if r.options.group == "" {
		return own, nil
	}
	if err := r.join(); err != nil {
		return own, err
	}
	own.QPN, own.GID = verbs.MulticastQPN, r.membership.MGID()
	return own, nil
}

func (r *perftestRun) join() error {
	group, err := parseGroup(r.options.group, r.options.device)
	if err != nil {
		return err
	}
	if r.membership, err = r.device.JoinMulticast(group, verbs.JoinFullMember); err != nil {
		return err
	}
	return r.endpoint.attach(r.membership)
}

// sends says whether this side sends: the client, and for latency both.
func (r *perftestRun) sends() bool { return r.exchange.client || r.test.Kind == latency }

// aim has messages go where the peer receives: its queue pair, or the group it is in.
func (r *perftestRun) aim() error {
	own, peer := r.exchange.own, r.exchange.peer
	if own.GID.IsIPv4() != peer.GID.IsIPv4() {
		return fmt.Errorf("the peer is %v, this side %v: one is IPv4, the other IPv6; perftest's -x, or --gid-index here, chooses: %w",
			peer.GID.Addr(), own.GID.Addr(), unix.EAFNOSUPPORT)
	}
	if !r.sends() {
		return nil
	}
	return r.endpoint.aim(r.source.Index, peer.GID, peer.QPN)
}

// describe fills in who the two sides are.
func (r *perftestRun) describe(mtu int) {
	own := r.device.side(r.exchange.own.GID.Addr().String())
	peer := side{Device: "perftest " + perftestVersion, Address: r.exchange.peer.GID.Addr().String(), MTU: mtu}
	r.report.Client, r.report.Server = own, peer
	if !r.exchange.client {
		r.report.Client, r.report.Server = peer, own
	}
}
