package ud

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
)

const (
	grhLen    = 40 // bytes at the start of each receive buffer
	cacheLine = 64 // bytes: buffers begin on one
	port      = 1  // a device has one port

	// batch is how many requests are posted, and completions taken, at once.
	batch = 64
)

// Endpoint sends and receives datagrams: a queue pair with its buffers. Its methods are safe for
// concurrent use.
type Endpoint struct {
	verbs   *verbs.Context
	options Options
	peer    Addr // of Dial
	qkey    verbs.QKey

	pd             *verbs.PD
	mr             *verbs.MR // receive buffers, then send buffers
	sendCQ, recvCQ *verbs.CQ
	qp             *verbs.QP

	life   context.Context // ends with Close
	end    context.CancelFunc
	making sync.WaitGroup // commands that Close waits for: those that make address handles or join
	begin  time.Time

	longest  atomic.Int64 // message that the port takes now, in bytes
	lastLook atomic.Int64 // at the port, since begin

	recv   receiver
	send   sender
	pace   *pace // nil without Options.Rate and ByteRate
	groups groups
}

// Listen makes an endpoint on a device. A context can have several. Close frees the endpoint's
// objects; the context stays the caller's.
func Listen(c *verbs.Context, o Options) (*Endpoint, error) {
	e, err := open(c, o)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return e, nil
}

// Dial makes an endpoint with a peer. Messages without To go to the peer. Unless the peer is a group,
// messages from other senders are discarded. Dial resolves the peer's address as verbs.PD.CreateAH
// does, until ctx is done.
func Dial(ctx context.Context, c *verbs.Context, peer Addr, o Options) (*Endpoint, error) {
	e, err := open(c, o)
	if err != nil {
		return nil, fmt.Errorf("dial %v: %w", peer, err)
	}
	e.peer = peer
	if err := e.makeHandle(ctx, &Message{}); err != nil {
		return nil, errors.Join(fmt.Errorf("dial %v: %w", peer, bare(err)), e.Close())
	}
	return e, nil
}

func open(c *verbs.Context, o Options) (*Endpoint, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: no verbs.Context", verbs.ErrInvalid)
	}
	attr, err := c.QueryPort(port)
	if err != nil {
		return nil, err
	}
	if err := o.complete(&attr); err != nil {
		return nil, err
	}
	e := &Endpoint{verbs: c, options: o, qkey: o.QKey, begin: time.Now()}
	e.life, e.end = context.WithCancel(context.Background())
	e.pace = newPace(&e.options)
	e.groups.joined = map[netip.Addr]*joined{}
	if err := e.make(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// make makes the objects, and posts all receives.
func (e *Endpoint) make() (err error) {
	o := &e.options
	recvStride, sendStride := lines(grhLen+o.MaxMessage), lines(o.MaxMessage)
	if e.pd, err = e.verbs.AllocPD(); err != nil {
		return err
	}
	if e.mr, err = e.pd.AllocMR(o.RecvDepth*recvStride+o.SendDepth*sendStride, verbs.AccessLocalWrite); err != nil {
		return err
	}
	if err := e.makeQueues(); err != nil {
		return err
	}
	if err := e.look(); err != nil {
		return err
	}
	if err := e.checkSource(); err != nil {
		return err
	}
	e.send.prepare(e, sendStride)
	return e.recv.prepare(e, recvStride)
}

// makeQueues makes the queue pair, ready to send, and CQs that are large enough for all outstanding
// requests.
func (e *Endpoint) makeQueues() (err error) {
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
	return e.qp.Activate(e.qkey)
}

// lines rounds a length up to a multiple of the cache line.
func lines(length int) int { return (length + cacheLine - 1) &^ (cacheLine - 1) }

// Addr is the endpoint's address, to pass on to peers: Options.Source, else the device's default
// address. The GID is zero while the device has no address.
func (e *Endpoint) Addr() Addr {
	if e == nil {
		return Addr{}
	}
	a := Addr{QPN: e.qp.Number(), QKey: e.qkey}
	if e.options.Source.IsValid() {
		a.GID = verbs.GIDFromAddr(e.options.Source)
	} else if entry, err := e.verbs.QueryGIDEx(port, 0); err == nil {
		a.GID = entry.GID
	}
	return a
}

// Addrs are all addresses of the endpoint, the default first.
func (e *Endpoint) Addrs() ([]Addr, error) {
	if e == nil {
		return nil, fmt.Errorf("own addresses: %w", errNil)
	}
	entries, err := e.verbs.QueryGIDTable(port)
	if err != nil {
		return nil, e.explain(err)
	}
	var all []Addr
	for _, entry := range entries {
		a := Addr{GID: entry.GID, QPN: e.qp.Number(), QKey: e.qkey}
		if len(all) == 0 || a != all[0] { // the default's own line repeats it
			all = append(all, a)
		}
	}
	return all, nil
}

// MaxMessage is the length of the longest message that can be sent now, in bytes: the smaller of
// Options.MaxMessage and the port's active MTU. The endpoint learns of another MTU when it sends, at
// most once a second: until then this is the length of before, and if the MTU has shrunk a longer
// message is queued and a later call gives a SendError for it.
func (e *Endpoint) MaxMessage() int {
	if e == nil {
		return 0
	}
	return int(e.longest.Load())
}

// Close leaves all groups, waits up to a second until sent messages have left, and frees the
// endpoint's objects. Calls that wait return ErrClosed. Lent buffers must not be used any more.
// Closing again does nothing.
func (e *Endpoint) Close() error {
	if e == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	if !e.shut() {
		return nil
	}
	e.making.Wait()
	err := e.leaveAll()
	if e.qp != nil {
		err = errors.Join(err, freed(e.qp.Close()))
	}
	err = errors.Join(err, closeAll(e.send.takeHandles()))
	for _, cq := range []*verbs.CQ{e.recvCQ, e.sendCQ} {
		if cq != nil {
			err = errors.Join(err, freed(cq.Close()))
		}
	}
	if e.mr != nil {
		err = errors.Join(err, freed(e.mr.Close()))
	}
	if e.pd != nil {
		err = errors.Join(err, freed(e.pd.Close()))
	}
	return err
}

// shut refuses further commands; false if it was called before.
func (e *Endpoint) shut() bool {
	e.send.mu.Lock()
	defer e.send.mu.Unlock()
	if e.life.Err() != nil {
		return false
	}
	e.end()
	return true
}

// enter begins a command that Close waits for, until making.Done.
func (e *Endpoint) enter() error {
	e.send.mu.Lock()
	defer e.send.mu.Unlock()
	if e.life.Err() != nil {
		return ErrClosed
	}
	e.making.Add(1)
	return nil
}

// freed ignores the error of a command to free something on a closed device: Close of the device has
// freed it.
func freed(err error) error {
	if errors.Is(err, verbs.ErrClosed) {
		return nil
	}
	return err
}
