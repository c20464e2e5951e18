package ping

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
	"github.com/roced/roced/cmd/roced/internal/pingpong"
	"github.com/roced/roced/verbs"
)

// meeting is one exchange of ping.
type meeting struct {
	device    *card.Device
	namespace string
	options   *options
	endpoint  *card.Endpoint
	local     netip.Addr // of the TCP connection
	source    verbs.GIDEntry
	peer      meet.Destination
	before    []card.Counter
}

// run meets the peer, exchanges messages, and prints how long that took.
func run(ctx context.Context, d *card.Device, namespace string, o *options) (err error) {
	if err := d.CheckSize(o.size); err != nil {
		return err
	}
	r := &meeting{device: d, namespace: namespace, options: o}
	r.endpoint, err = card.NewEndpoint(d, card.EndpointAttr{Depth: o.rxDepth, Size: d.MTU, QKey: card.TestQKey, TrafficClass: o.trafficClass})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.endpoint.Close()) }()
	if r.before, err = d.Counters(); err != nil {
		return err
	}
	if err := r.meet(ctx); err != nil {
		return err
	}
	return r.play(ctx)
}

// meet exchanges addresses. The connection is not needed after it: ibv_ud_pingpong closes it.
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
	return c.Handshake(r.exchange)
}

func (r *meeting) connect(ctx context.Context) (net.Conn, error) {
	o := r.options
	if o.Host != "" {
		return meet.Dial(ctx, r.namespace, o.Host, o.TCPPort, "roced ping -d DEVICE, or ibv_ud_pingpong -g INDEX")
	}
	listener, err := meet.Listen(ctx, r.namespace, o.TCPPort)
	if err != nil {
		return nil, err
	}
	if err := meet.Announce(r.device, o.out, listener, "a client", o.GIDIndex); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return meet.Accept(ctx, listener)
}

func (r *meeting) exchange(conn io.ReadWriter) (err error) {
	if r.options.Host == "" {
		return meet.Answer(conn, func(peer meet.Destination) (meet.Destination, error) {
			if err := r.choose(peer.GID); err != nil {
				return meet.Destination{}, err
			}
			return r.own(), r.aim(peer)
		})
	}
	if err := r.choose(verbs.GID{}); err != nil {
		return err
	}
	peer, err := meet.Introduce(conn, r.own())
	if err != nil {
		return err
	}
	return r.aim(peer)
}

func (r *meeting) choose(peer verbs.GID) (err error) {
	r.source, err = r.device.ChooseGID(r.options.GIDIndex, r.local, peer)
	return err
}

func (r *meeting) own() meet.Destination {
	return meet.Destination{QPN: r.endpoint.QP.Number(), GID: r.source.GID}
}

func (r *meeting) aim(peer meet.Destination) error {
	r.peer = peer
	return r.endpoint.Aim(r.source.Index, peer.GID, peer.QPN)
}

// play exchanges the messages, and says what became of them, also if not all went.
func (r *meeting) play(ctx context.Context) error {
	o := r.options
	if _, err := fmt.Fprintf(o.out, "  local address:  %v\n  remote address: %v\n", r.own(), r.peer); err != nil {
		return err
	}
	p := &pingpong.Exchange{Endpoint: r.endpoint, Begins: o.Host != "", Numbers: o.Host != "", Peer: r.peer.QPN, Size: o.size, Count: o.count, Timeout: o.timeout, Sleep: o.sleep}
	payload := pingpong.Payload(o.size)
	r.endpoint.Fill(payload)
	if o.check {
		p.Payload = payload
	}
	line := cli.StartProgress(o.errOut, fmt.Sprintf("ping of %d bytes", o.size))
	failed := p.Run(ctx, line)
	line.End()
	if errors.Is(failed, pingpong.ErrNothingCame) {
		failed = p.Explain(r.device, r.before)
	}
	if p.Sent == 0 || p.Received == 0 {
		return failed
	}
	return errors.Join(failed, printTotals(o.out, p))
}
