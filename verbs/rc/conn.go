// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/internal/transport"
)

const (
	port      = 1 // a device has one port
	answerLen = 8 // length of an atomic's response, in bytes
)

// Conn is a connection to one peer: a queue pair with its buffers. Its methods are safe for concurrent use.
type Conn struct {
	options Options
	domain  *Domain
	life    transport.Life
	ending  ending
	begin   time.Time
	ends    atomic.Pointer[[2]netip.AddrPort] // set by Close: the local and the remote address

	sendCQ, recvCQ *verbs.CQ
	mr             *verbs.MR // the receive buffers, unless they belong to a region or the domain, and the send buffers
	qp             *verbs.QP
	source         verbs.GIDEntry // New: entry of the source address
	psn            verbs.PSN      // New: PSN of the first packet
	handshake      handshake      // Dial and Accept

	sends transport.Sends
	slots []slot // by slot of sends
	recv  receiver
}

// newConn creates a connection without a queue pair.
func newConn(c *verbs.Context, o Options) (*Conn, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: no verbs.Context", verbs.ErrInvalid)
	}
	if err := o.complete(c); err != nil {
		return nil, err
	}
	d, err := domainFor(c, o.Domain)
	if err != nil {
		return nil, err
	}
	conn := &Conn{options: o, domain: d, begin: time.Now()}
	conn.psn = verbs.PSN(rand.Uint32N(1 << 24))
	conn.life.Begin(ErrClosed)
	conn.ending.init()
	conn.handshake = handshake{life: &conn.life, ending: &conn.ending, news: make(chan *cm.Event, 4)}
	conn.recv.conn, conn.recv.waiting = conn, make(chan struct{}, 1)
	if err := conn.create(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// domainFor enters a domain, or creates one.
func domainFor(c *verbs.Context, d *Domain) (*Domain, error) {
	if d == nil {
		return newDomain(c, DomainOptions{})
	}
	return d, d.enter()
}

// create creates the CQs, which have room for the completions of all outstanding requests, and allocates the buffers.
func (c *Conn) create() (err error) {
	o, d := &c.options, c.domain
	if c.sendCQ, err = d.verbs.CreateCQ(o.SendDepth); err != nil {
		return err
	}
	if c.recvCQ, err = d.verbs.CreateCQ(o.RecvDepth); err != nil {
		return err
	}
	stride, slots := o.stride(), o.SendDepth
	if d.recvs == nil && o.RecvInto == nil {
		slots += o.RecvDepth
	}
	if c.mr, err = d.pd.AllocMR(slots*stride, verbs.AccessLocalWrite); err != nil {
		return err
	}
	c.slots = make([]slot, o.SendDepth)
	c.sends.Start(transport.SendConfig{
		Life: &c.life, MR: c.mr, Depth: o.SendDepth, Stride: stride, CQ: c.sendCQ, Spin: o.Spin, SignalLast: true,
		Post: func(list []verbs.SendWR) error { return c.qp.PostSend(list) }, Check: c.check, Settle: c.settle,
	})
	return nil
}

// stride returns the distance between two buffers, in bytes.
func (o *Options) stride() int { return transport.Lines(max(o.MaxMessage, answerLen)) }

// initAttr returns the attributes for creating the queue pair.
func (c *Conn) initAttr() *verbs.QPInitAttr {
	o := &c.options
	return &verbs.QPInitAttr{
		Type: o.Type, SendCQ: c.sendCQ, RecvCQ: c.recvCQ, SRQ: c.domain.srq,
		Cap: verbs.QPCap{MaxSendWR: uint32(o.SendDepth), MaxRecvWR: uint32(o.RecvDepth)},
	}
}

// postRecvs posts all receives. The queue pair must be in INIT.
func (c *Conn) postRecvs() error {
	if c.domain.recvs != nil {
		c.recv.buffers = c.domain.recvs
		return nil
	}
	o, mr, stride := &c.options, c.mr, c.options.stride()
	if o.RecvInto != nil {
		mr, stride = o.RecvInto.mr, o.MaxMessage
	}
	c.recv.buffers = &c.recv.own
	return c.recv.own.Start(mr, o.RecvDepth, stride, o.MaxMessage, c.qp.PostRecv)
}

// RemotePrivateData returns the private data of the peer, padded with zeros; nil for a connection created by New.
func (c *Conn) RemotePrivateData() []byte {
	if c == nil {
		return nil
	}
	return c.handshake.remoteData
}

// Close waits until the peer has acknowledged all requests, at most for Options.Linger, then ends the connection and
// frees its objects. The peer is notified if the connection was made by Dial or Accept. The error ErrUnacknowledged
// means that the wait was too short: unacknowledged data may be lost, and the connection is closed nevertheless. Close
// does not report whether all data has arrived if the connection had ended before; Flush does. Waiting calls return
// ErrClosed. Buffers of received messages must not be used after Close, but those of a Domain must still be released.
// Closing again has no effect.
func (c *Conn) Close() error {
	if c == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	first := false
	c.sends.Do(func(transport.Progress) { first = c.life.End() }) // no request is posted afterwards
	if !first {
		return nil
	}
	c.life.Wait()
	c.ends.Store(&[2]netip.AddrPort{c.LocalAddr(), c.RemoteAddr()})
	var err error
	if c.qp != nil {
		err = c.linger()
		c.disconnect()
	}
	return errors.Join(err, c.handshake.destroyQP(c.qp), transport.Free(c.handshake.id),
		transport.Free(c.recvCQ), transport.Free(c.sendCQ), transport.Free(c.mr), c.domain.leave())
}

// linger waits until all requests have been acknowledged, at most for Options.Linger.
func (c *Conn) linger() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Linger)
	defer cancel()
	if err := c.qp.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return nil // other calls have returned the reason for the end of the connection
	}
	_ = c.sends.Poll(time.Since(c.begin)) // if it fails, some completed requests count as outstanding
	left := 0
	c.sends.Do(func(p transport.Progress) { left = p.Outstanding() })
	if left > 0 {
		return fmt.Errorf("close: %w: %d requests within %v; call Flush before, or increase Options.Linger",
			ErrUnacknowledged, left, c.options.Linger)
	}
	return nil
}

// disconnect notifies the peer. If the domain has shared receives, it also moves the queue pair to ERR, and returns the
// receives of unreceived messages to the domain: when the last request has been flushed, all of them have completed.
func (c *Conn) disconnect() {
	if id := c.handshake.id; id != nil {
		_ = id.Disconnect() // an error: it was never connected, or the device has failed
	}
	if c.domain.recvs == nil {
		return
	}
	if err := c.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
		return // the device has failed, and the receives with it
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Linger)
	defer cancel()
	_ = c.qp.Drain(ctx)
	c.recv.discard()
}
