// SPDX-License-Identifier: Apache-2.0

package rc

import (
	"context"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// slot describes an outstanding request.
type slot struct {
	opcode verbs.Opcode
	length int
	remote RemoteRegion
	into   []byte // destination to which the slot's buffer is copied when the request is complete; nil: none
}

// Send sends a copy of data, which the caller may reuse immediately. While SendDepth requests are outstanding, it waits
// until ctx is done: a peer that does not receive blocks the sender. A nil error means that the message is queued;
// Flush waits until the peer has acknowledged it. If the connection has ended, the error is the reason, even if another
// request has caused it.
func (c *Conn) Send(ctx context.Context, data []byte) error {
	if c == nil {
		return fmt.Errorf("send: %w", errNil)
	}
	one := [1]Message{{Data: data}}
	_, err := c.SendBatch(ctx, one[:])
	return err
}

// SendBatch sends messages as Send does, and returns the number of queued messages.
func (c *Conn) SendBatch(ctx context.Context, messages []Message) (int, error) {
	if c == nil {
		return 0, fmt.Errorf("send: %w", errNil)
	}
	n, _, err := c.post(ctx, len(messages), true, func(i int, wr *verbs.SendWR) error { return messages[i].fill(c, wr) })
	return n, err
}

// fill sets the fields of the work request that sends a copy of the message.
func (m *Message) fill(c *Conn, wr *verbs.SendWR) error {
	if err := c.options.checkLength(len(m.Data)); err != nil {
		return err
	}
	wr.Opcode, wr.ImmData = verbs.WRSend, m.Imm
	if m.HasImm {
		wr.Opcode = verbs.WRSendWithImm
	}
	c.slots[c.sends.Slot(wr.ID)] = slot{opcode: wr.Opcode, length: len(m.Data)}
	copy(c.sends.UseBuffer(wr, len(m.Data)), m.Data)
	return nil
}

// checkLength checks that data fits into a buffer.
func (o *Options) checkLength(length int) error {
	if length > o.MaxMessage {
		return fmt.Errorf("%w: %d bytes exceed Options.MaxMessage %d; Post sends longer data from a Region",
			ErrTooLong, length, o.MaxMessage)
	}
	return nil
}

// errFull is allocated only once, because a program that posts as fast as possible receives it often.
var errFull = fmt.Errorf("post: %w: SendDepth requests are outstanding; try again, or use Post, which waits",
	verbs.ErrQueueFull)

// post queues n requests, whose fields fill sets. It returns the number of queued requests and the ID of the last one.
func (c *Conn) post(ctx context.Context, n int, wait bool, fill func(i int, wr *verbs.SendWR) error) (sent int, last uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, 0, c.life.Explain(err)
	}
	now := time.Since(c.begin)
	for sent < n && err == nil {
		var posted int
		var number uint64
		posted, number, err = c.sends.Post(now, n-sent, func(i int, wr *verbs.SendWR) error { return fill(sent+i, wr) })
		if sent += posted; posted > 0 {
			last = number
		}
		switch {
		case err == transport.ErrFull && wait:
			err = c.sends.AwaitFree(ctx)
		case err == transport.ErrFull:
			err = errFull
		}
	}
	return sent, last, c.life.Explain(err)
}

// check returns the reason why no more requests can be posted, or nil.
func (c *Conn) check() error {
	if c.life.Err() != nil {
		return ErrClosed
	}
	return c.ending.cause()
}

// settle processes the completion of a request.
func (c *Conn) settle(wc *verbs.WC) {
	at := &c.slots[c.sends.Slot(wc.ID)]
	if wc.Status != verbs.WCSuccess {
		c.ending.fail(wc, at)
		return
	}
	if at.into != nil {
		copy(at.into, c.sends.Buffer(wc.ID, at.length))
		at.into = nil
	}
}

// awaitDone waits until a request and all requests before it have completed, and returns the error of the first failed
// one.
func (c *Conn) awaitDone(ctx context.Context, number uint64) error {
	err := c.sends.Await(ctx, func(p transport.Progress) bool { return p.Completed >= number })
	if err == nil {
		err = c.ending.outcome(ctx, number)
	}
	return c.life.Explain(err)
}

// Flush waits until the peer has acknowledged all earlier messages and requests; over UC, until they are sent. If one
// of them failed, the error is the reason for the end of the connection.
func (c *Conn) Flush(ctx context.Context) error {
	if c == nil {
		return fmt.Errorf("flush: %w", errNil)
	}
	if c.life.Err() != nil {
		return ErrClosed
	}
	var last uint64
	c.sends.Do(func(p transport.Progress) { last = p.Posted })
	return c.awaitDone(ctx, last)
}

// Completed polls for completions without waiting, and returns the number of completed requests, including messages,
// and the number of outstanding ones. Its error is that of Flush.
func (c *Conn) Completed() (done uint64, outstanding int, err error) {
	if c == nil {
		return 0, 0, fmt.Errorf("poll for completions: %w", errNil)
	}
	err = c.sends.Poll(time.Since(c.begin))
	c.sends.Do(func(p transport.Progress) { done, outstanding = p.Completed, p.Outstanding() })
	if broken := c.ending.firstBroken(); broken > 0 {
		done, err = broken-1, c.ending.ofRequest(true)
	}
	return done, outstanding, c.life.Explain(err)
}
