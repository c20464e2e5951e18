package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"

	"github.com/roced/roced/verbs"
)

// pingRun is one exchange of ping.
type pingRun struct {
	device    *device
	namespace string
	options   *pingOptions
	endpoint  *endpoint
	local     netip.Addr // of the TCP connection
	source    verbs.GIDEntry
	peer      destination
	before    []counter
}

// runPing meets the peer, exchanges messages, and prints how long that took.
func runPing(ctx context.Context, d *device, namespace string, o *pingOptions) (err error) {
	if err := d.checkSize(o.size); err != nil {
		return err
	}
	r := &pingRun{device: d, namespace: namespace, options: o}
	r.endpoint, err = newEndpoint(d, endpointAttr{depth: o.rxDepth, size: d.mtu, qkey: testQKey, trafficClass: o.trafficClass})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.endpoint.Close()) }()
	if r.before, err = d.counters(); err != nil {
		return err
	}
	if err := r.meet(ctx); err != nil {
		return err
	}
	return r.play(ctx)
}

// meet exchanges addresses. The connection is not needed after it: ibv_ud_pingpong closes it.
func (r *pingRun) meet(ctx context.Context) (err error) {
	conn, err := r.connect(ctx)
	if err != nil {
		return err
	}
	c := newControl(ctx, conn, "ibv_ud_pingpong or roced ping")
	defer func() { err = errors.Join(err, c.Close()) }()
	if r.local, err = c.localAddr(); err != nil {
		return err
	}
	return c.handshake(r.exchange)
}

func (r *pingRun) connect(ctx context.Context) (net.Conn, error) {
	o := r.options
	if o.host != "" {
		return dial(ctx, r.namespace, o.host, o.tcpPort, "roced ping -d DEVICE, or ibv_ud_pingpong -g INDEX")
	}
	listener, err := listenIn(ctx, r.namespace, o.tcpPort)
	if err != nil {
		return nil, err
	}
	if err := r.device.announce(o.out, listener, "a client", o.gidIndex); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return acceptFrom(ctx, listener)
}

// acceptFrom waits for one client, and listens no longer.
func acceptFrom(ctx context.Context, listener net.Listener) (net.Conn, error) {
	defer listener.Close()
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	conn, err := listener.Accept()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return conn, err
}

func (r *pingRun) exchange(conn io.ReadWriter) (err error) {
	if r.options.host == "" {
		return answer(conn, func(peer destination) (destination, error) {
			if err := r.choose(peer.GID); err != nil {
				return destination{}, err
			}
			return r.own(), r.aim(peer)
		})
	}
	if err := r.choose(verbs.GID{}); err != nil {
		return err
	}
	peer, err := introduce(conn, r.own())
	if err != nil {
		return err
	}
	return r.aim(peer)
}

func (r *pingRun) choose(peer verbs.GID) (err error) {
	r.source, err = r.device.chooseGID(r.options.gidIndex, r.local, peer)
	return err
}

func (r *pingRun) own() destination {
	return destination{QPN: r.endpoint.qp.Number(), GID: r.source.GID}
}

func (r *pingRun) aim(peer destination) error {
	r.peer = peer
	return r.endpoint.aim(r.source.Index, peer.GID, peer.QPN)
}

// play exchanges the messages, and says what became of them, also if not all went.
func (r *pingRun) play(ctx context.Context) error {
	o := r.options
	if _, err := fmt.Fprintf(o.out, "  local address:  %v\n  remote address: %v\n", r.own(), r.peer); err != nil {
		return err
	}
	p := &pingpong{e: r.endpoint, begins: o.host != "", numbers: o.host != "", peer: r.peer.QPN, size: o.size, count: o.count, timeout: o.timeout, sleep: o.sleep}
	payload := pingPayload(o.size)
	r.endpoint.fill(payload)
	if o.check {
		p.payload = payload
	}
	line := startProgress(o.errOut, fmt.Sprintf("ping of %d bytes", o.size))
	failed := p.run(ctx, line)
	line.end()
	if errors.Is(failed, errNothingCame) {
		failed = p.explain(r.device, r.before)
	}
	if p.sent == 0 || p.received == 0 {
		return failed
	}
	return errors.Join(failed, p.print(o.out))
}

// pingPayload is what ibv_ud_pingpong sends with -c, and checks: a 0 at the start of each
// page, and '{' elsewhere. Without -c it sends '{' only, and checks nothing.
func pingPayload(size int) []byte {
	const page = 4096
	payload := slices.Repeat([]byte{'{'}, size)
	for i := 0; i < size; i += page {
		payload[i] = 0
	}
	return payload
}

// print is what ibv_ud_pingpong prints at the end, and the times of the round trips.
func (p *pingpong) print(out io.Writer) error {
	bytes := int64(p.size) * int64(p.sent+p.received)
	seconds, usec := p.elapsed().Seconds(), float64(p.elapsed())/1e3
	_, err := fmt.Fprintf(out, "%d bytes in %.2f seconds = %.2f Mbit/sec\n%d iters in %.2f seconds = %.2f usec/iter\n",
		bytes, seconds, float64(bytes)*8/usec, p.received, seconds, usec/float64(p.received))
	if len(p.trips) == 0 || err != nil {
		return err
	}
	slices.Sort(p.trips)
	_, err = fmt.Fprintf(out, "round trip min/median/p99/max = %.1f/%.1f/%.1f/%.1f usec\n", float64(p.trips[0])/1e3,
		float64(percentile(p.trips, 50))/1e3, float64(percentile(p.trips, 99))/1e3, float64(p.trips[len(p.trips)-1])/1e3)
	return err
}
