// SPDX-License-Identifier: Apache-2.0

package ping

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"

	"github.com/roced/roced/cmd/roced/internal/card"
	"github.com/roced/roced/cmd/roced/internal/cli"
	"github.com/roced/roced/cmd/roced/internal/meet"
	"github.com/roced/roced/cmd/roced/internal/pingpong"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/rc"
	"github.com/roced/roced/verbs/ud"
	"golang.org/x/sys/unix"
)

// meeting is one exchange of ping.
type meeting struct {
	device    *card.Device
	namespace string
	options   *options
	endpoint  *card.Endpoint // for datagrams
	stream    *card.Stream   // for a connection
	local     netip.Addr     // address of the TCP connection
	source    verbs.GIDEntry
	peer      meet.Destination
	before    []card.Counter
	ids       ids        // with --cm
	terms     meet.Terms // this side's, without --cm
}

// run exchanges addresses and messages with the peer, and prints the times.
func run(ctx context.Context, d *card.Device, namespace string, o *options) (err error) {
	if !o.connects() {
		if err := d.CheckSize(o.size); err != nil {
			return err
		}
	}
	r := &meeting{device: d, namespace: namespace, options: o}
	r.setTerms()
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.before, err = d.Counters(); err != nil {
		return err
	}
	find := r.meet
	if o.byID {
		find = r.meetByID
	}
	if err := find(ctx); err != nil {
		return err
	}
	return r.play(ctx)
}

// meet exchanges addresses. The connection is not needed afterwards: ibv_ud_pingpong closes it.
func (r *meeting) meet(ctx context.Context) (err error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	c := meet.NewControl(ctx, conn, "ibv_ud_pingpong or roced ping")
	defer func() { err = errors.Join(err, c.Close()) }()
	if r.local, err = c.LocalAddr(); err != nil {
		return err
	}
	return c.Handshake(func(conn io.ReadWriter) error { return r.exchange(ctx, conn) })
}

// Close closes everything that was opened.
func (r *meeting) Close() error {
	var err error
	switch {
	case r.endpoint != nil:
		err = r.endpoint.Close()
	case r.stream != nil:
		err = r.stream.Close()
	}
	return errors.Join(err, r.ids.Close())
}

func (r *meeting) connect(ctx context.Context) (net.Conn, error) {
	o := r.options
	if o.Host != "" {
		return meet.Dial(ctx, r.device, r.namespace, o.Host, o.TCPPort, "roced ping -d DEVICE without --cm, or ibv_ud_pingpong -g INDEX")
	}
	listener, err := meet.Listen(ctx, r.namespace, o.TCPPort)
	if err != nil {
		return nil, err
	}
	if err := meet.Announce(r.device, o.notes(), listener.Addr(), "a client", o.GIDIndex); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return meet.Accept(ctx, listener)
}

func (r *meeting) exchange(ctx context.Context, conn io.ReadWriter) (err error) {
	if r.options.Host == "" {
		return meet.Answer(conn, &r.terms, r.options.addresses(), func(peer meet.Destination) (meet.Destination, error) {
			if err := r.listen(peer.GID); err != nil {
				return meet.Destination{}, err
			}
			return r.own(), r.aim(ctx, peer)
		})
	}
	if err := r.listen(verbs.GID{}); err != nil {
		return err
	}
	peer, err := meet.Introduce(conn, &r.terms, r.own(), r.options.addresses())
	if err != nil {
		return err
	}
	return r.aim(ctx, peer)
}

// setTerms sets the settings that must be equal on both sides, and the number of messages.
func (r *meeting) setTerms() {
	o, t := r.options, &r.terms
	*t = meet.Terms{Program: "ping", Payload: o.size, Longest: "--size", MTU: r.device.MTU, Count: o.count}
	t.Flag("--rc", o.rc && !o.srq).Flag("--uc", o.uc).Flag("--srq", o.srq).Value("--size", o.size).Flag("--check", o.check)
	if o.connects() {
		t.Value("--mtu", o.mtu)
		t.Payload, t.Longest = o.mtu, "--mtu"
	}
}

// listen creates the endpoint, with an address of the peer's IP version.
func (r *meeting) listen(peer verbs.GID) (err error) {
	o := r.options
	if r.source, err = r.device.ChooseGID(o.GIDIndex, r.local, peer); err != nil {
		return err
	}
	if o.connects() {
		r.stream, err = card.OpenStream(r.device, o.stream(r.source.GID.Addr()))
		return err
	}
	r.endpoint, err = card.OpenEndpoint(r.device, ud.Options{
		QKey: card.TestQKey, RecvDepth: o.rxDepth, Source: r.source.GID.Addr(), TrafficClass: o.trafficClass, Spin: !o.waiting.Sleep,
	})
	return err
}

func destination(a rc.QPAddr) meet.Destination {
	return meet.Destination{QPN: a.QPN, PSN: a.PSN, GID: a.GID}
}

func (r *meeting) own() meet.Destination {
	if r.stream != nil {
		return destination(r.stream.LocalQP())
	}
	return meet.Destination{QPN: r.endpoint.QPN(), GID: r.source.GID}
}

func (r *meeting) aim(ctx context.Context, peer meet.Destination) error {
	r.peer = peer
	if r.stream != nil {
		return r.stream.Connect(rc.QPAddr{GID: peer.GID, QPN: peer.QPN, PSN: peer.PSN})
	}
	return r.endpoint.Aim(ctx, peer.Addr())
}

// via returns the endpoint for the messages.
func (r *meeting) via() pingpong.Endpoint {
	if r.stream != nil {
		return r.stream
	}
	return r.endpoint
}

// play exchanges the messages and prints the result, even if the exchange failed.
func (r *meeting) play(ctx context.Context) error {
	o := r.options
	if _, err := fmt.Fprintf(o.notes(), "  local address:  %v\n  remote address: %v\n", r.own(), r.peer); err != nil {
		return err
	}
	payload := pingpong.Payload(o.size)
	p := &pingpong.Exchange{
		Endpoint: r.via(), To: r.peer.Addr(), Data: payload, Peer: r.peer.QPN, Begins: o.Host != "", Numbers: o.Host != "",
		Size: o.size, Count: o.count, Timeout: o.timeout, Sleep: o.waiting.Sleep,
	}
	if o.check {
		p.Payload = payload
	}
	if o.verbose {
		p.Each = func() { printMessage(o.notes(), r.peer.GID.Addr(), p) }
	}
	line := cli.StartProgress(o.errOut, fmt.Sprintf("ping of %d bytes", o.size))
	failed := p.Run(ctx, line)
	line.End()
	if errors.Is(failed, pingpong.ErrNothingCame) {
		failed = p.Explain(r.device, r.before)
	} else if errors.Is(failed, unix.ETIMEDOUT) && p.Received == 0 { // over a reliable connection
		failed = fmt.Errorf("%w; %s", failed, card.Unanswered(min(o.size, o.mtu)))
	}
	failed = r.terms.ExplainCount(failed)
	if p.Sent == 0 || p.Received == 0 {
		return failed
	}
	if o.json {
		return errors.Join(failed, json.NewEncoder(o.out).Encode(r.result(p)))
	}
	return errors.Join(failed, printTotals(o.out, p))
}
