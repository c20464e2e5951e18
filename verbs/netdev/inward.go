// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"context"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs/ud"
)

// runInward carries received packets to the host.
func (d *Device) runInward(ctx context.Context) error {
	messages := make([]ud.Message, readBatch)
	r := reassembly{begun: map[origin]*partial{}}
	for {
		n, err := d.endpoint.RecvBatch(ctx, messages)
		if err != nil {
			return err
		}
		now, own := d.now(), d.ownNow()
		for i := range messages[:n] {
			if why := d.arrive(ctx, now, &messages[i], &r, own); why != dropNone {
				d.counters.drop(why, 1)
			}
		}
		d.endpoint.Release(messages[:n])
	}
}

// ownNow returns a view of the interface's addresses.
func (d *Device) ownNow() own {
	d.mu.Lock()
	defer d.mu.Unlock()
	return own{prefixes: d.own.prefixes} // replaced, never changed
}

// arrive processes one datagram.
func (d *Device) arrive(ctx context.Context, now time.Duration, m *ud.Message, r *reassembly, own own) drop {
	h, p, ok := parseHeader(m.Data)
	if !ok {
		return dropShort
	}
	switch h.protocol {
	case typeARP:
		return d.resolve(ctx, now, m, p, own)
	case typeIPv4, typeIPv6:
	default:
		return dropProtocol
	}
	if !h.whole() {
		var why drop
		if p, why = r.add(now, origin{m.From, m.To.IsGroup()}, h, p); p == nil {
			return why
		}
	}
	ip, why := parsePacket(p)
	if why == dropNone {
		why = ip.checkArrived(h.protocol, m.To.IsGroup(), own.has)
	}
	if why != dropNone {
		return why
	}
	if d.iface.WritePacket(p) != nil {
		return dropInterface
	}
	d.counters.received.Add(1)
	d.counters.receivedBytes.Add(uint64(len(p)))
	return dropNone
}

// resolve processes a query, a reply or an announcement.
func (d *Device) resolve(ctx context.Context, now time.Duration, m *ud.Message, p []byte, own own) drop {
	r, ok := parseResolution(p)
	if !ok {
		return dropResolution
	}
	if own.has(r.sender) {
		return dropClaim
	}
	d.learn(ctx, now, r.sender, m.From)
	if r.op == opAsk && own.has(r.target) {
		answer := resolution{opAnswer, r.target, r.sender}
		reply := [1]ud.Message{*m}
		reply[0].To, reply[0].Data, reply[0].HasImm = m.From, answer.message(), false
		d.endpoint.TrySend(ctx, reply[:]) // if the reply is lost, the peer repeats the query
	}
	return dropNone
}

// maxConnecting is the maximum number of goroutines that create address handles.
const maxConnecting = 32

// learn stores the location of a neighbour, if it was queried.
func (d *Device) learn(ctx context.Context, now time.Duration, ip netip.Addr, place ud.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.neighbours.all[ip]
	switch {
	case n == nil:
	case n.place == place:
		n.confirm(now)
	case d.connecting < maxConnecting:
		d.connecting++
		go d.connect(ctx, ip, place)
	}
}

// connect creates the address handle of a neighbour, which may take a while, and sends the packets that wait for it.
func (d *Device) connect(ctx context.Context, ip netip.Addr, place ud.Addr) {
	within, cancel := context.WithTimeout(ctx, maxAsks*askEvery)
	defer cancel()
	err := d.endpoint.Resolve(within, place)
	d.mu.Lock()
	d.connecting--
	n := d.neighbours.all[ip]
	if err != nil || n == nil {
		d.mu.Unlock()
		return
	}
	n.place = place
	n.confirm(d.now())
	waiting := n.waiting
	n.waiting = nil
	d.mu.Unlock()
	d.outward.mu.Lock()
	defer d.outward.mu.Unlock()
	for _, framed := range waiting {
		if ip, why := parsePacket(framed[headerLen:]); why == dropNone && d.add(ctx, framed, ip.protocol, place) != nil {
			return
		}
	}
	_ = d.flush(ctx) // an error is the end, which Run detects too
}
