package rc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
)

const (
	cacheLine = 64 // bytes: buffers begin on one
	port      = 1  // a device has one port
	answerLen = 8  // bytes, of an atomic

	// batch is how many requests are posted, and completions taken, at once.
	batch = 64
)

// Conn is a connection to one peer: a queue pair with its buffers. Its methods are safe for concurrent use.
type Conn struct {
	options Options
	domain  *Domain
	source  verbs.GIDEntry // of New
	psn     verbs.PSN      // likewise: of the first packet

	sendCQ, recvCQ *verbs.CQ
	mr             *verbs.MR // receive buffers, unless others have them, then send buffers
	qp             *verbs.QP
	id             *cm.ID         // which has the queue pair; nil of New
	news           chan *cm.Event // of the id, until it is connected
	connected      bool           // as far as the watcher knows, whose field this is
	said           []byte         // by the peer

	life   context.Context // ends with Close
	end    context.CancelFunc
	making sync.Mutex // held while the connection is made, and by Close
	ending ending
	begin  time.Time
	ends   atomic.Pointer[[2]netip.AddrPort] // as of Close: this one's address, and the peer's

	send sender
	recv receiver
}

// newConn makes a connection without a queue pair.
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
	conn := &Conn{options: o, domain: d, begin: time.Now(), news: make(chan *cm.Event, 4)}
	conn.psn = verbs.PSN(rand.Uint32N(1 << 24))
	conn.life, conn.end = context.WithCancel(context.Background())
	conn.recv.waiting = make(chan struct{}, 1)
	conn.ending.init()
	if err := conn.make(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// domainFor enters a domain, or makes one.
func domainFor(c *verbs.Context, d *Domain) (*Domain, error) {
	if d == nil {
		return newDomain(c, DomainOptions{})
	}
	return d, d.enter()
}

// make makes the CQs, which have room for all that can be outstanding, and the memory.
func (c *Conn) make() (err error) {
	o, d := &c.options, c.domain
	if c.sendCQ, err = d.verbs.CreateCQ(o.SendDepth); err != nil {
		return err
	}
	if c.recvCQ, err = d.verbs.CreateCQ(o.RecvDepth); err != nil {
		return err
	}
	stride, slots := lines(max(o.MaxMessage, answerLen)), o.SendDepth
	if c.ownsRecvs() {
		slots += o.RecvDepth
	}
	c.mr, err = d.pd.AllocMR(slots*stride, verbs.AccessLocalWrite)
	if err == nil {
		c.send.prepare(c, stride)
	}
	return err
}

// ownsRecvs says whether the connection's memory has its receive buffers.
func (c *Conn) ownsRecvs() bool { return c.domain.recvs == nil && c.options.RecvInto == nil }

// initAttr is what the queue pair is made with.
func (c *Conn) initAttr() *verbs.QPInitAttr {
	o := &c.options
	return &verbs.QPInitAttr{
		Type: o.Type, SendCQ: c.sendCQ, RecvCQ: c.recvCQ, SRQ: c.domain.srq,
		Cap: verbs.QPCap{MaxSendWR: uint32(o.SendDepth), MaxRecvWR: uint32(o.RecvDepth)},
	}
}

// postRecvs posts all receives, as soon as the queue pair is in INIT.
func (c *Conn) postRecvs() error {
	o, mr, stride := &c.options, c.mr, c.send.stride
	if c.domain.recvs != nil {
		c.recv.pool = c.domain.recvs
		return nil
	}
	if o.RecvInto != nil {
		mr, stride = o.RecvInto.mr, o.MaxMessage
	}
	c.recv.pool = newPool(mr, o.RecvDepth, stride, o.MaxMessage, c.qp.PostRecv)
	return c.recv.pool.postAll()
}

// lines rounds a length up to a multiple of the cache line.
func lines(length int) int { return (length + cacheLine - 1) &^ (cacheLine - 1) }

// PeerData is the private data of the peer, and zeros behind it; nil of a connection without an id (New).
func (c *Conn) PeerData() []byte {
	if c == nil {
		return nil
	}
	return c.said
}

// Close waits until the peer has acknowledged what was sent (Options.Linger), ends the connection, and frees
// all that the connection has. The peer is told if the connection was made by ids. ErrUnacknowledged says that
// the wait was not long enough, and what was not acknowledged may be lost; Close has done the rest nevertheless. Of a
// connection that has ended before, Flush says whether all arrived. Calls that wait return ErrClosed. Lent
// buffers must not be used any more, except that those of a Domain's receives are to be released. Closing again
// does nothing.
func (c *Conn) Close() error {
	if c == nil {
		return fmt.Errorf("close: %w", errNil)
	}
	if !c.shut() {
		return nil
	}
	c.making.Lock()
	defer c.making.Unlock()
	c.ends.Store(&[2]netip.AddrPort{c.LocalAddr(), c.PeerAddr()})
	var err error
	if c.qp != nil {
		err = c.linger()
		c.fail()
		err = errors.Join(err, freed(c.destroyQP()))
	}
	if c.id != nil {
		err = errors.Join(err, freed(c.id.Close()))
	}
	for _, cq := range []*verbs.CQ{c.recvCQ, c.sendCQ} {
		if cq != nil {
			err = errors.Join(err, freed(cq.Close()))
		}
	}
	if c.mr != nil {
		err = errors.Join(err, freed(c.mr.Close()))
	}
	return errors.Join(err, c.domain.leave())
}

// shut refuses further requests; false if it was called before.
func (c *Conn) shut() bool {
	c.send.mu.Lock()
	defer c.send.mu.Unlock()
	if c.life.Err() != nil {
		return false
	}
	c.end()
	return true
}

// linger waits until what was sent has been acknowledged.
func (c *Conn) linger() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Linger)
	defer cancel()
	if err := c.qp.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return nil // what has ended the connection, other calls have said
	}
	_ = c.send.reap() // what follows is true also if it fails
	c.send.mu.Lock()
	defer c.send.mu.Unlock()
	if left := c.send.posted - c.send.reaped; left > 0 {
		return fmt.Errorf("close: %w: %d requests within %v; call Flush before, or raise Options.Linger",
			ErrUnacknowledged, left, c.options.Linger)
	}
	return nil
}

// fail takes the queue pair to ERR, and tells the peer. Receives of a shared pool that its messages have
// taken go back there: when the last request has been flushed, all of them have completed.
func (c *Conn) fail() {
	if c.id != nil {
		_ = c.id.Disconnect() // else it was never connected, or the device is gone
	}
	if c.domain.recvs == nil {
		return
	}
	if err := c.qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState); err != nil {
		return // the device is gone, and the pool with it
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.options.Linger)
	defer cancel()
	_ = c.qp.Drain(ctx)
	c.recv.discard(c)
}

func (c *Conn) destroyQP() error {
	if c.id != nil {
		return c.id.DestroyQP()
	}
	return c.qp.Close()
}
