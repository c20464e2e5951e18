// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ud"
)

const (
	readBatch = 64  // packets read at once
	sendBatch = 256 // pieces sent at once
)

// outward is the sending direction. All pieces of a packet are sent in a row, so its lock is held from the first to the
// last.
type outward struct {
	mu       sync.Mutex
	messages []ud.Message
	memory   []byte // of pieces that have no room for a header in front
	packet   uint8  // number of the last packet in pieces
}

// runOutward carries the host's packets to the card.
func (d *Device) runOutward(ctx context.Context) error {
	longest := max(d.options.MTU, ipv6MTU, 4096)
	buffers, sizes := make([][]byte, readBatch), make([]int, readBatch)
	memory := make([]byte, readBatch*(headerLen+longest))
	for i := range buffers {
		buffers[i] = memory[i*(headerLen+longest):][headerLen : headerLen+longest]
	}
	for {
		n, err := d.iface.ReadPackets(buffers, sizes)
		if err != nil {
			return err
		}
		if err := d.carry(ctx, memory, headerLen+longest, sizes[:n]); err != nil {
			return err
		}
	}
}

// carry sends packets that are stored at a stride, each with room for a header in front.
func (d *Device) carry(ctx context.Context, memory []byte, stride int, sizes []int) error {
	now, o := d.now(), &d.outward
	var asks []resolution
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, size := range sizes {
		framed := memory[i*stride:][:headerLen+size]
		to, protocol, ok := d.route(now, framed[headerLen:], &asks)
		if !ok {
			continue
		}
		if err := d.add(ctx, framed, protocol, to); err != nil {
			return err
		}
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	return d.tell(ctx, asks)
}

// route returns the destination of a packet. It queues or drops a packet that cannot be sent now, and adds the
// necessary queries to asks.
func (d *Device) route(now time.Duration, p []byte, asks *[]resolution) (to ud.Addr, protocol uint16, ok bool) {
	ip, why := parsePacket(p)
	if why != dropNone {
		d.counters.drop(why, 1)
		return to, 0, false
	}
	if ip.forAll() {
		return d.group, ip.protocol, true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	hop, err := d.hop(ip.to)
	if err != nil {
		d.counters.drop(dropNoHop, 1)
		return to, 0, false
	}
	source, has := d.own.source(ip.from, hop)
	if !has {
		d.counters.drop(dropNoAddress, 1)
		return to, 0, false
	}
	n, lost := d.neighbours.find(now, hop, source)
	if lost > 0 {
		d.counters.drop(dropWaiting, lost)
	}
	if n.mustAsk(now) {
		*asks = append(*asks, n.question())
	}
	if n.known() {
		return n.place, ip.protocol, true
	}
	d.wait(n, p)
	return to, 0, false
}

// wait queues a packet until the neighbour responds.
func (d *Device) wait(n *neighbour, p []byte) {
	if len(n.waiting) >= maxWaiting {
		d.counters.drop(dropWaiting, 1)
		return
	}
	framed := make([]byte, headerLen+len(p))
	copy(framed[headerLen:], p)
	n.waiting = append(n.waiting, framed)
}

// hop returns the next hop to a destination. The caller holds mu.
func (d *Device) hop(to netip.Addr) (netip.Addr, error) {
	if d.own.onLink(to) {
		return to, nil
	}
	if hop, known := d.hops[to]; known {
		return hop, nil
	}
	hop, err := d.iface.NextHop(to)
	if err == nil && len(d.hops) < d.options.MaxNeighbours {
		d.hops[to] = hop
	}
	return hop, err
}

// add adds a packet's pieces. The packet has room for a header in front.
func (d *Device) add(ctx context.Context, framed []byte, protocol uint16, to ud.Addr) error {
	o, most := &d.outward, d.pieceLen()
	p := framed[headerLen:]
	if len(p) > most*maxPieces {
		d.counters.drop(dropTooLong, 1)
		return nil
	}
	d.counters.sent.Add(1)
	d.counters.sentBytes.Add(uint64(len(p)))
	if len(p) <= most {
		header{protocol: protocol}.put(framed)
		o.messages = append(o.messages, ud.Message{To: to, Data: framed})
	} else {
		o.packet++
		o.cut(header{protocol: protocol, packet: o.packet}, p, most, to)
	}
	if len(o.messages) >= sendBatch {
		return d.flush(ctx)
	}
	return nil
}

// cut splits a packet into pieces.
func (o *outward) cut(h header, p []byte, most int, to ud.Addr) {
	for ; len(p) > 0; h.piece++ {
		n := min(len(p), most)
		h.more = n < len(p)
		start := len(o.memory)
		o.memory = append(o.memory, make([]byte, headerLen)...)
		o.memory = append(o.memory, p[:n]...)
		piece := o.memory[start:len(o.memory):len(o.memory)]
		h.put(piece)
		o.messages = append(o.messages, ud.Message{To: to, Data: piece})
		p = p[n:]
	}
}

// flush sends the added pieces. A message that the card refuses is dropped; an error means that the card is closed or
// has failed.
func (d *Device) flush(ctx context.Context) error {
	o := &d.outward
	left := o.messages
	o.messages, o.memory = o.messages[:0], o.memory[:0]
	for len(left) > 0 {
		n, err := d.endpoint.SendBatch(ctx, left)
		left = left[n:]
		var earlier *ud.SendError
		switch {
		case err == nil:
		case isOver(ctx, err):
			return err
		case errors.As(err, &earlier):
			d.counters.drop(dropSend, 1+earlier.Lost)
		default:
			d.counters.drop(dropSend, 1)
			left = left[1:]
		}
	}
	return nil
}

// isOver reports whether an error is the end of the device, and not of one message.
func isOver(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, net.ErrClosed) || errors.Is(err, verbs.ErrDeviceFatal) || errors.Is(err, verbs.ErrClosed)
}

// tell sends queries and announcements to the group, unless there is no room: they are repeated.
func (d *Device) tell(ctx context.Context, list []resolution) error {
	for _, r := range list {
		one := [1]ud.Message{{To: d.group, Data: r.message()}}
		if _, err := d.endpoint.TrySend(ctx, one[:]); err != nil && isOver(ctx, err) {
			return err
		}
	}
	return nil
}

// Send sends an IP packet to a queue pair or a group, without address resolution (the kernel's send, whose address
// handle and queue pair number are the ud.Addr). If its Q_Key is 0, the network's is used.
func (d *Device) Send(ctx context.Context, p []byte, to ud.Addr) error {
	ip, why := parsePacket(p)
	switch {
	case d.endpoint == nil:
		return fmt.Errorf("send to %v: %w: call Init first", to, verbs.ErrState)
	case why != dropNone:
		return fmt.Errorf("send to %v: %w: not an IP packet (%s)", to, verbs.ErrInvalid, dropNames[why])
	case len(p) > d.pieceLen()*maxPieces:
		return fmt.Errorf("send to %v: %w: %d bytes; the maximum is %d", to, ud.ErrTooLong, len(p), d.pieceLen()*maxPieces)
	}
	if err := d.endpoint.Resolve(ctx, to); err != nil {
		return err
	}
	framed := make([]byte, headerLen+len(p))
	copy(framed[headerLen:], p)
	d.outward.mu.Lock()
	defer d.outward.mu.Unlock()
	if err := d.add(ctx, framed, ip.protocol, to); err != nil {
		return err
	}
	return d.flush(ctx)
}
