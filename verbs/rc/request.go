package rc

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/roced/roced/verbs"
)

// Request is one request of Post or Do. Its data are in a region of this side, and not copied: until the
// request is done, nothing else may change them.
type Request struct {
	// Opcode is verbs.WRSend, WRRDMAWrite, both also WithImm, WRRDMARead, WRAtomicFetchAndAdd or
	// WRAtomicCmpAndSwp.
	Opcode verbs.Opcode
	// Region, Offset and Length are what is sent or written, or where what is read goes; of an atomic what was
	// there before, in 8 bytes in the machine's order. The region is of the connection's domain; nil where
	// Length is 0.
	Region         *Region
	Offset, Length int
	// Remote is the peer's memory, and RemoteOffset where in it the request works: of an atomic at a multiple of
	// 8. Without use for messages.
	Remote       Remote
	RemoteOffset int

	Imm uint32 // immediate data, which take a receive of the peer's
	// Add is what WRAtomicFetchAndAdd adds. WRAtomicCmpAndSwp writes Swap if Compare is there.
	Add, Compare, Swap uint64
	// Fence has the request wait until all reads and atomics before it are done.
	Fence bool
}

// Post queues requests, as Send does messages, and gives the number that were queued. They are carried out in
// order; Flush waits for that, and Done says how many have been.
func (c *Conn) Post(ctx context.Context, requests []Request) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("post: %w", errNil)
	}
	n, _, err := post(ctx, c, requests, (*Conn).putRequest, true)
	return n, err
}

// TryPost is Post, but does not wait: verbs.ErrQueueFull if not all requests can be queued now.
func (c *Conn) TryPost(requests []Request) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("post: %w", errNil)
	}
	n, _, err := post(context.Background(), c, requests, (*Conn).putRequest, false)
	return n, err
}

// Do posts requests, and waits until all have been carried out.
func (c *Conn) Do(ctx context.Context, requests ...Request) error {
	if c == nil {
		return fmt.Errorf("do: %w", errNil)
	}
	_, last, err := post(ctx, c, requests, (*Conn).putRequest, true)
	if err != nil || len(requests) == 0 {
		return err
	}
	return c.explain(c.send.awaitDone(ctx, last))
}

// putRequest makes the n-th request of a list.
func (c *Conn) putRequest(n int, r *Request) error {
	if err := c.check(r); err != nil {
		return err
	}
	wr, at, _ := c.send.request(n, r.Opcode, r.Length)
	wr.ImmData = r.Imm
	if r.Fence {
		wr.Flags |= verbs.SendFence
	}
	if isMessage(r.Opcode) {
		wr.RemoteAddr, wr.RKey = 0, 0
	} else {
		at.remote = r.Remote
		wr.RemoteAddr, wr.RKey = r.Remote.Addr+uint64(r.RemoteOffset), r.Remote.Key
	}
	switch r.Opcode {
	case verbs.WRAtomicFetchAndAdd:
		wr.CompareAdd = r.Add
	case verbs.WRAtomicCmpAndSwp:
		wr.CompareAdd, wr.Swap = r.Compare, r.Swap
	}
	c.send.sges[n] = verbs.SGE{}
	if r.Length > 0 {
		c.send.sges[n] = r.Region.mr.SGE(r.Offset, r.Length)
	}
	return nil
}

func isMessage(o verbs.Opcode) bool { return o == verbs.WRSend || o == verbs.WRSendWithImm }

// check refuses what the card would, which would end the connection.
func (c *Conn) check(r *Request) error {
	switch r.Opcode {
	case verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
	case verbs.WRRDMARead, verbs.WRAtomicFetchAndAdd, verbs.WRAtomicCmpAndSwp:
		if err := c.checkAnswered(r); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: %v (%d) is not an operation of Request", verbs.ErrInvalid, r.Opcode, uint8(r.Opcode))
	}
	if err := checkLocal(r, c.domain); err != nil {
		return err
	}
	if isMessage(r.Opcode) {
		return nil
	}
	if err := r.Remote.check(r.RemoteOffset, r.Length); err != nil {
		return fmt.Errorf("%v: the peer's memory: %w", r.Opcode, err)
	}
	return nil
}

// checkAnswered is for what the peer's card answers with data.
func (c *Conn) checkAnswered(r *Request) error {
	if c.options.Type == verbs.QPTypeUC {
		return fmt.Errorf("%w: %v over an unreliable connection", verbs.ErrInvalid, r.Opcode)
	}
	if r.Opcode == verbs.WRRDMARead {
		return nil
	}
	if r.Length != answerLen || (r.Remote.Addr+uint64(r.RemoteOffset))%answerLen != 0 {
		return fmt.Errorf("%w: %v of %d bytes at 0x%x; atomics are of 8 bytes at a multiple of 8",
			verbs.ErrInvalid, r.Opcode, r.Length, r.Remote.Addr+uint64(r.RemoteOffset))
	}
	return nil
}

// checkLocal refuses memory that is not there.
func checkLocal(r *Request, d *Domain) error {
	switch {
	case r.Length == 0:
		return nil
	case r.Region == nil || r.Region.domain != d:
		return fmt.Errorf("%w: %v of %d bytes without a region of the connection's domain",
			verbs.ErrInvalid, r.Opcode, r.Length)
	case r.Region.closed.Load():
		return fmt.Errorf("%w: the region of %v", verbs.ErrObjectClosed, r.Opcode)
	case r.Offset < 0 || r.Length < 0 || r.Offset > r.Region.Len()-r.Length:
		return fmt.Errorf("%v: the region: %w: %d bytes at offset %d, of %d bytes",
			r.Opcode, ErrOutside, r.Length, r.Offset, r.Region.Len())
	}
	return nil
}

// small is a request of which the data are copied.
type small struct {
	opcode       verbs.Opcode
	data         []byte // to be written, or to be filled
	remote       Remote
	offset       int
	compare, add uint64 // of atomics
	swap         uint64
}

// Write writes a copy of data to the peer's memory, at an offset. Like Send it returns when that is queued:
// Flush waits until it is there. The peer's program learns nothing of it.
func (c *Conn) Write(ctx context.Context, to Remote, offset int, data []byte) error {
	if c == nil {
		return fmt.Errorf("write: %w", errNil)
	}
	one := [1]small{{opcode: verbs.WRRDMAWrite, data: data, remote: to, offset: offset}}
	_, _, err := post(ctx, c, one[:], (*Conn).putSmall, true)
	return err
}

// Read reads the peer's memory, from an offset, until data are full. It sees what was written before over the
// same connection.
func (c *Conn) Read(ctx context.Context, from Remote, offset int, data []byte) error {
	if c == nil {
		return fmt.Errorf("read: %w", errNil)
	}
	return c.ask(ctx, small{opcode: verbs.WRRDMARead, data: data, remote: from, offset: offset})
}

// FetchAdd adds to 8 bytes of the peer's memory, at an offset, which is a number in the machine's order, and
// gives what was there before. Others that do so at the same time come before or after.
func (c *Conn) FetchAdd(ctx context.Context, at Remote, offset int, add uint64) (was uint64, err error) {
	if c == nil {
		return 0, fmt.Errorf("fetch and add: %w", errNil)
	}
	return c.atomic(ctx, small{opcode: verbs.WRAtomicFetchAndAdd, remote: at, offset: offset, add: add})
}

// CompareSwap is FetchAdd, but writes swap if compare is there: if what it gives is compare, it has.
func (c *Conn) CompareSwap(ctx context.Context, at Remote, offset int, compare, swap uint64) (was uint64, err error) {
	if c == nil {
		return 0, fmt.Errorf("compare and swap: %w", errNil)
	}
	r := small{opcode: verbs.WRAtomicCmpAndSwp, remote: at, offset: offset, compare: compare, swap: swap}
	return c.atomic(ctx, r)
}

func (c *Conn) atomic(ctx context.Context, r small) (uint64, error) {
	r.data = make([]byte, answerLen)
	if err := c.ask(ctx, r); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(r.data), nil
}

// ask posts a request, and waits for its answer, which has been copied then.
func (c *Conn) ask(ctx context.Context, r small) error {
	one := [1]small{r}
	_, number, err := post(ctx, c, one[:], (*Conn).putSmall, true)
	if err != nil {
		return err
	}
	if err := c.send.awaitDone(ctx, number); err != nil {
		c.send.forget(number)
		return c.explain(err)
	}
	return nil
}

// forget has the answer of a request go nowhere: who asked has gone.
func (s *sender) forget(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reaped < number {
		s.slots[number%s.depth].into = nil
	}
}

func (c *Conn) putSmall(n int, r *small) error {
	length := len(r.data)
	whole := Request{Opcode: r.opcode, Length: length, Remote: r.remote, RemoteOffset: r.offset}
	if r.opcode != verbs.WRRDMAWrite {
		if err := c.checkAnswered(&whole); err != nil {
			return err
		}
	}
	if err := r.remote.check(r.offset, length); err != nil {
		return fmt.Errorf("%v: the peer's memory: %w", r.opcode, err)
	}
	if r.opcode == verbs.WRRDMAWrite || r.opcode == verbs.WRRDMARead {
		if err := c.fits(length); err != nil {
			return err
		}
	}
	wr, at, place := c.send.request(n, r.opcode, length)
	at.remote = r.remote
	wr.RemoteAddr, wr.RKey = r.remote.Addr+uint64(r.offset), r.remote.Key
	wr.CompareAdd, wr.Swap = r.compare+r.add, r.swap
	if r.opcode == verbs.WRRDMAWrite {
		c.send.copyIn(n, place, r.data)
		return nil
	}
	_, offset := c.send.buffer(place)
	c.send.sges[n], at.into = c.mr.SGE(offset, length), r.data
	return nil
}
