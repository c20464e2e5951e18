// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

const (
	grhLen     = 40 // bytes at the beginning of each receive buffer
	portNumber = 1  // a device has one port
)

// Endpoint sends and receives datagrams: a queue pair with its buffers. Its methods are safe for
// concurrent use.
type Endpoint struct {
	verbs   *verbs.Context
	options Options
	peer    Addr // of Dial
	life    transport.Life
	begin   time.Time

	pd             *verbs.PD
	mr             *verbs.MR // receive buffers, then send buffers
	sendCQ, recvCQ *verbs.CQ
	qp             *verbs.QP

	port    port
	groups  groups
	handles handles
	pace    *pace // nil without Options.Rate and ByteRate

	sends        transport.Sends
	destinations []Addr                    // by slot of sends
	refused      atomic.Pointer[SendError] // returned by the next call; no message is posted before that
	lost         atomic.Uint64
	restarting   sync.Mutex
	restarts     atomic.Uint64 // of the queue pair, after a refused message

	receives transport.Receives
	failed   atomic.Pointer[error] // the reason why receiving has ended: the queue pair is in ERR
	strays   atomic.Uint64
}

// New creates an endpoint on a device. A context can have several. Close frees the endpoint's
// objects, but not the context.
func New(c *verbs.Context, o Options) (*Endpoint, error) {
	e, err := open(c, o)
	if err != nil {
		return nil, fmt.Errorf("new endpoint: %w", err)
	}
	return e, nil
}

// Dial creates an endpoint with a peer. Messages without To are sent to the peer. Unless the peer is a group,
// messages from other senders are discarded. Dial resolves the peer's address as verbs.PD.CreateAH
// does, until ctx is done.
func Dial(ctx context.Context, c *verbs.Context, peer Addr, o Options) (*Endpoint, error) {
	e, err := open(c, o)
	if err != nil {
		return nil, fmt.Errorf("dial %v: %w", peer, err)
	}
	e.peer = peer
	if err := e.handles.resolve(ctx, e, &Message{}, peer); err != nil {
		return nil, errors.Join(fmt.Errorf("dial %v: %w", peer, bare(err)), e.Close())
	}
	return e, nil
}

func open(c *verbs.Context, o Options) (*Endpoint, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: no verbs.Context", verbs.ErrInvalid)
	}
	attr, err := c.QueryPort(portNumber)
	if err != nil {
		return nil, err
	}
	if err := o.complete(&attr); err != nil {
		return nil, err
	}
	e := &Endpoint{verbs: c, options: o, begin: time.Now()}
	e.life.Begin(ErrClosed)
	e.pace = newPace(&e.options)
	e.groups.init(e)
	e.handles.init(o.MaxHandles)
	if err := e.create(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// create creates the objects, and posts all receives.
func (e *Endpoint) create() (err error) {
	o := &e.options
	recvStride, sendStride := transport.Lines(grhLen+o.MaxMessage), transport.Lines(o.MaxMessage)
	if e.pd, err = e.verbs.AllocPD(); err != nil {
		return err
	}
	if e.mr, err = e.pd.AllocMR(o.RecvDepth*recvStride+o.SendDepth*sendStride, verbs.AccessLocalWrite); err != nil {
		return err
	}
	if err := e.createQueues(); err != nil {
		return err
	}
	if err := e.port.open(e); err != nil {
		return err
	}
	e.destinations = make([]Addr, o.SendDepth)
	e.sends.Start(transport.SendConfig{
		Life: &e.life, MR: e.mr, Depth: o.SendDepth, Stride: sendStride, CQ: e.sendCQ, Spin: o.Spin,
		Post: e.qp.PostSend, Check: e.check, Settle: e.settle,
	})
	return e.receives.Start(e.mr, o.RecvDepth, recvStride, recvStride, e.qp.PostRecv)
}

// createQueues creates the queue pair, ready to send, and CQs that are large enough for all outstanding
// requests.
func (e *Endpoint) createQueues() (err error) {
	o := &e.options
	if e.sendCQ, err = e.verbs.CreateCQ(o.SendDepth); err != nil {
		return err
	}
	if e.recvCQ, err = e.verbs.CreateCQ(o.RecvDepth); err != nil {
		return err
	}
	e.qp, err = e.pd.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeUD, SendCQ: e.sendCQ, RecvCQ: e.recvCQ,
		Cap:              verbs.QPCap{MaxSendWR: uint32(o.SendDepth), MaxRecvWR: uint32(o.RecvDepth)},
		BlockSelfMcastLB: o.NoLoopback,
	})
	if err != nil {
		return err
	}
	return e.qp.Activate(o.QKey)
}

// LocalAddr returns the endpoint's address, to be passed to peers: Options.Source, or the device's default
// address. The GID is zero while the device has no address.
func (e *Endpoint) LocalAddr() Addr {
	if e == nil {
		return Addr{}
	}
	a := Addr{QPN: e.qp.Number(), QKey: e.options.QKey}
	if e.options.Source.IsValid() {
		a.GID = verbs.GIDFromAddr(e.options.Source)
	} else if entry, err := e.verbs.QueryGID(portNumber, 0); err == nil {
		a.GID = entry.GID
	}
	return a
}

// LocalAddrs returns all addresses of the endpoint, the device's default address first.
func (e *Endpoint) LocalAddrs() ([]Addr, error) {
	if e == nil {
		return nil, fmt.Errorf("own addresses: %w", errNil)
	}
	entries, err := e.verbs.QueryGIDTable(portNumber)
	if err != nil {
		return nil, e.life.Explain(err)
	}
	var all []Addr
	for _, entry := range entries {
		a := Addr{GID: entry.GID, QPN: e.qp.Number(), QKey: e.options.QKey}
		if len(all) == 0 || a != all[0] { // the default's own entry repeats it
			all = append(all, a)
		}
	}
	return all, nil
}

// RemoteAddr returns the peer of Dial, the zero Addr without a peer.
func (e *Endpoint) RemoteAddr() Addr {
	if e == nil {
		return Addr{}
	}
	return e.peer
}

// MaxMessage returns the length of the longest message that can be sent now, in bytes: the smaller of
// Options.MaxMessage and the port's active MTU. The endpoint detects a change of the MTU when it sends, at
// most once a second. Until then MaxMessage returns the previous length; if the MTU has become smaller, a longer
// message is queued and a later call returns a SendError for it.
func (e *Endpoint) MaxMessage() int {
	if e == nil {
		return 0
	}
	return int(e.port.longest.Load())
}

// Close leaves all groups, waits up to a second until sent messages have left, and frees the
// endpoint's objects. Calls that wait return ErrClosed. Lent buffers must not be used any more.
// Closing again does nothing.
func (e *Endpoint) Close() error {
	if e == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	if !e.life.End() {
		return nil
	}
	e.life.Wait()
	return errors.Join(e.groups.leaveAll(),
		transport.Free(e.qp), e.handles.close(),
		transport.Free(e.recvCQ), transport.Free(e.sendCQ), transport.Free(e.mr), transport.Free(e.pd))
}
