// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
)

// Request is a request for Post or Do. Its data is in a region of this end and is not copied, so it must not be changed
// until the request has completed.
type Request struct {
	// Opcode is verbs.WRSend, WRSendWithImm, WRRDMAWrite, WRRDMAWriteWithImm, WRRDMARead, WRAtomicFetchAndAdd or
	// WRAtomicCmpAndSwp.
	Opcode verbs.Opcode
	// Region, Offset and Length are the source of a send or write, the destination of a read, or the destination of an
	// atomic's previous value (8 bytes in native byte order). The region must belong to the connection's domain; it may
	// be nil if Length is 0.
	Region         *Region
	Offset, Length int
	// Remote is the peer's memory, and RemoteOffset the offset in it. For an atomic the resulting address must be a
	// multiple of 8. Both are ignored for messages.
	Remote       RemoteRegion
	RemoteOffset int

	Imm uint32 // immediate data, which consumes a receive of the peer
	// Add is the operand of WRAtomicFetchAndAdd. WRAtomicCmpAndSwp writes Swap if the value equals Compare.
	Add, Compare, Swap uint64
	// Fence makes the request wait until all earlier reads and atomics have completed.
	Fence bool
}

// Post queues requests, as Send queues messages, and returns the number of queued requests. They are executed in order.
// Flush waits for them, and Completed returns the number of completed ones.
func (c *Conn) Post(ctx context.Context, requests []Request) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("post: %w", errNil)
	}
	n, _, err := c.post(ctx, len(requests), true, func(i int, wr *verbs.SendWR) error { return requests[i].fill(c, wr) })
	return n, err
}

// TryPost is Post without waiting: it returns verbs.ErrQueueFull if not all requests can be queued now.
func (c *Conn) TryPost(requests []Request) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("post: %w", errNil)
	}
	n, _, err := c.post(context.Background(), len(requests), false, func(i int, wr *verbs.SendWR) error { return requests[i].fill(c, wr) })
	return n, err
}

// Do posts requests, and waits until all have completed.
func (c *Conn) Do(ctx context.Context, requests ...Request) error {
	if c == nil {
		return fmt.Errorf("do: %w", errNil)
	}
	_, last, err := c.post(ctx, len(requests), true, func(i int, wr *verbs.SendWR) error { return requests[i].fill(c, wr) })
	if err != nil || len(requests) == 0 {
		return err
	}
	return c.awaitDone(ctx, last)
}

// fill sets the fields of the work request.
func (r *Request) fill(c *Conn, wr *verbs.SendWR) error {
	if err := r.check(c); err != nil {
		return err
	}
	at := slot{opcode: r.Opcode, length: r.Length}
	wr.Opcode, wr.ImmData = r.Opcode, r.Imm
	if r.Fence {
		wr.Flags = verbs.SendFence
	}
	if !isMessage(r.Opcode) {
		at.remote = r.Remote
		wr.RemoteAddr, wr.RKey = r.Remote.Addr+uint64(r.RemoteOffset), r.Remote.Key
	}
	switch r.Opcode {
	case verbs.WRAtomicFetchAndAdd:
		wr.CompareAdd = r.Add
	case verbs.WRAtomicCmpAndSwp:
		wr.CompareAdd, wr.Swap = r.Compare, r.Swap
	}
	c.slots[c.sends.Slot(wr.ID)] = at
	wr.SGList[0] = verbs.SGE{}
	if r.Length > 0 {
		wr.SGList[0] = r.Region.mr.SGE(r.Offset, r.Length)
	}
	return nil
}

func isMessage(o verbs.Opcode) bool { return o == verbs.WRSend || o == verbs.WRSendWithImm }

// check returns errors for which the card would otherwise end the connection.
func (r *Request) check(c *Conn) error {
	switch r.Opcode {
	case verbs.WRSend, verbs.WRSendWithImm, verbs.WRRDMAWrite, verbs.WRRDMAWriteWithImm:
	case verbs.WRRDMARead, verbs.WRAtomicFetchAndAdd, verbs.WRAtomicCmpAndSwp:
		if err := r.checkAnswered(c.options.Type); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: %v (%d) is not supported by Request", verbs.ErrInvalid, r.Opcode, uint8(r.Opcode))
	}
	if err := r.checkLocal(c.domain); err != nil {
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

// checkAnswered checks a request whose response contains data.
func (r *Request) checkAnswered(kind verbs.QPType) error {
	if kind == verbs.QPTypeUC {
		return fmt.Errorf("%w: %v is not supported over an unreliable connection", verbs.ErrInvalid, r.Opcode)
	}
	if r.Opcode == verbs.WRRDMARead {
		return nil
	}
	if r.Length != answerLen || (r.Remote.Addr+uint64(r.RemoteOffset))%answerLen != 0 {
		return fmt.Errorf("%w: %v of %d bytes at 0x%x; atomics need 8 bytes at a multiple of 8",
			verbs.ErrInvalid, r.Opcode, r.Length, r.Remote.Addr+uint64(r.RemoteOffset))
	}
	return nil
}

// checkLocal checks that the memory is in a region of the domain.
func (r *Request) checkLocal(d *Domain) error {
	switch {
	case r.Length == 0:
		return nil
	case r.Region == nil || r.Region.domain != d:
		return fmt.Errorf("%w: %v of %d bytes needs a region of the connection's domain",
			verbs.ErrInvalid, r.Opcode, r.Length)
	case r.Region.closed.Load():
		return fmt.Errorf("%w: the region of %v", verbs.ErrObjectClosed, r.Opcode)
	case r.Offset < 0 || r.Length < 0 || r.Offset > r.Region.Len()-r.Length:
		return fmt.Errorf("%v: the region: %w: %d bytes at offset %d exceed the length of %d bytes",
			r.Opcode, ErrOutside, r.Length, r.Offset, r.Region.Len())
	}
	return nil
}
