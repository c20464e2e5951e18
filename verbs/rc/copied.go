// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// copied is a request whose data is copied to or from a slot's buffer.
type copied struct {
	opcode       verbs.Opcode
	data         []byte // source or destination
	remote       RemoteRegion
	offset       int
	compare, add uint64 // operands of atomics
	swap         uint64
}

// Write writes a copy of data to the peer's memory at offset. Like Send, it returns when the request is queued; Flush
// waits until the data has been written. The peer's program is not notified.
func (c *Conn) Write(ctx context.Context, to RemoteRegion, offset int, data []byte) error {
	if c == nil {
		return fmt.Errorf("write: %w", errNil)
	}
	r := copied{opcode: verbs.WRRDMAWrite, data: data, remote: to, offset: offset}
	_, _, err := c.post(ctx, 1, true, func(_ int, wr *verbs.SendWR) error { return r.fill(c, wr) })
	return err
}

// Read fills data from the peer's memory at offset. It observes all earlier writes over the same connection.
func (c *Conn) Read(ctx context.Context, from RemoteRegion, offset int, data []byte) error {
	if c == nil {
		return fmt.Errorf("read: %w", errNil)
	}
	return c.do(ctx, &copied{opcode: verbs.WRRDMARead, data: data, remote: from, offset: offset})
}

// FetchAdd adds a number to the 8-byte number in the peer's memory at offset, in native byte order, and returns the
// previous number. It is atomic with respect to other atomics.
func (c *Conn) FetchAdd(ctx context.Context, at RemoteRegion, offset int, add uint64) (was uint64, err error) {
	if c == nil {
		return 0, fmt.Errorf("fetch and add: %w", errNil)
	}
	return c.atomic(ctx, &copied{opcode: verbs.WRAtomicFetchAndAdd, remote: at, offset: offset, add: add})
}

// CompareSwap writes swap to the number if it equals compare, and returns the previous number, which equals compare on
// success. See FetchAdd.
func (c *Conn) CompareSwap(ctx context.Context, at RemoteRegion, offset int, compare, swap uint64) (was uint64, err error) {
	if c == nil {
		return 0, fmt.Errorf("compare and swap: %w", errNil)
	}
	return c.atomic(ctx, &copied{opcode: verbs.WRAtomicCmpAndSwp, remote: at, offset: offset, compare: compare, swap: swap})
}

func (c *Conn) atomic(ctx context.Context, r *copied) (uint64, error) {
	r.data = make([]byte, answerLen)
	if err := c.do(ctx, r); err != nil {
		return 0, err
	}
	return binary.NativeEndian.Uint64(r.data), nil
}

// do posts a request, and waits until its response has been copied.
func (c *Conn) do(ctx context.Context, r *copied) error {
	_, number, err := c.post(ctx, 1, true, func(_ int, wr *verbs.SendWR) error { return r.fill(c, wr) })
	if err != nil {
		return err
	}
	if err := c.awaitDone(ctx, number); err != nil {
		c.sends.Do(func(p transport.Progress) {
			if p.Completed < number { // do not copy later: the caller may reuse its memory
				c.slots[c.sends.Slot(number)].into = nil
			}
		})
		return err
	}
	return nil
}

// fill sets the fields of the work request.
func (r *copied) fill(c *Conn, wr *verbs.SendWR) error {
	length := len(r.data)
	if r.opcode != verbs.WRRDMAWrite {
		whole := Request{Opcode: r.opcode, Length: length, Remote: r.remote, RemoteOffset: r.offset}
		if err := whole.checkAnswered(c.options.Type); err != nil {
			return err
		}
	}
	if err := r.remote.check(r.offset, length); err != nil {
		return fmt.Errorf("%v: the peer's memory: %w", r.opcode, err)
	}
	if r.opcode == verbs.WRRDMAWrite || r.opcode == verbs.WRRDMARead {
		if err := c.options.checkLength(length); err != nil {
			return err
		}
	}
	at := slot{opcode: r.opcode, length: length, remote: r.remote}
	wr.Opcode, wr.ImmData = r.opcode, 0
	wr.RemoteAddr, wr.RKey = r.remote.Addr+uint64(r.offset), r.remote.Key
	wr.CompareAdd, wr.Swap = r.compare+r.add, r.swap
	if buffer := c.sends.UseBuffer(wr, length); r.opcode == verbs.WRRDMAWrite {
		copy(buffer, r.data)
	} else {
		at.into = r.data
	}
	c.slots[c.sends.Slot(wr.ID)] = at
	return nil
}
