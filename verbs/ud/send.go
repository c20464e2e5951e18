// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Reasons why a message cannot be posted yet, besides transport.ErrFull. The endpoint resolves them.
var (
	errUnresolved = errors.New("the destination has no address handle")
	errRefused    = errors.New("the card has refused an earlier message")
)

// Send sends a copy of data, which the caller may reuse immediately. Until ctx is done, it waits for the message's turn
// (Options.Rate), for a free buffer, and for a new destination's hardware address; verbs.ErrUnreachable if the
// neighbour does not respond. A nil error means that the message is queued; like any datagram it may be lost. A
// *SendError concerns earlier messages.
func (e *Endpoint) Send(ctx context.Context, to Addr, data []byte) error {
	if e == nil {
		return fmt.Errorf("send: %w", errNil)
	}
	one := [1]Message{{To: to, Data: data}}
	_, err := e.send(ctx, one[:], true)
	return err
}

// SendBatch sends messages, each to its To, as Send does, and returns the number of queued messages. A received message
// whose To has been set to its From is a reply, as with Message.Reply.
func (e *Endpoint) SendBatch(ctx context.Context, messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("send batch: %w", errNil)
	}
	return e.send(ctx, messages, true)
}

// TrySend is SendBatch, but does not wait for a free buffer, nor for a message's turn by Options.Rate:
// verbs.ErrQueueFull if not all messages can be queued now.
func (e *Endpoint) TrySend(ctx context.Context, messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("try send: %w", errNil)
	}
	return e.send(ctx, messages, false)
}

// send posts messages. It resolves the reason why the next one cannot be posted, and waits if that is allowed.
func (e *Endpoint) send(ctx context.Context, messages []Message, wait bool) (sent int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, e.life.Explain(err)
	}
	now := time.Since(e.begin)
	e.port.readAgain(now)
	for due := 0; sent < len(messages) && err == nil; {
		if sent == due {
			var n int
			if n, err = e.pace.await(ctx, e.life.Context, messages[sent:], wait); err != nil {
				break
			}
			due += n
		}
		var n int
		n, err = e.post(now, messages[sent:due])
		sent += n
		switch {
		case err == errUnresolved:
			m := &messages[sent]
			err = e.handles.resolve(ctx, e, m, *e.destination(m))
		case err == errRefused:
			err = e.restart(ctx)
		case err == transport.ErrFull && wait:
			err = e.sends.AwaitFree(ctx)
		case err == transport.ErrFull:
			err = e.pollFull(now)
		}
	}
	return sent, e.life.Explain(err)
}

// post queues messages, up to the first that cannot be posted yet.
func (e *Endpoint) post(now time.Duration, messages []Message) (int, error) {
	h := &e.handles
	h.mu.Lock()
	defer h.mu.Unlock()
	n, _, err := e.sends.Post(now, len(messages), func(i int, wr *verbs.SendWR) error {
		return e.fill(wr, &messages[i])
	})
	return n, err
}

// fill sets the request of a message.
func (e *Endpoint) fill(wr *verbs.SendWR, m *Message) error {
	to := e.destination(m)
	if to.isNoGroup() {
		return &toError{*to, to.noGroup()}
	}
	if longest := e.port.longest.Load(); int64(len(m.Data)) > longest {
		return &toError{*to, fmt.Errorf("%w: %d bytes; the maximum is %d (see MaxMessage)", ErrTooLong, len(m.Data), longest)}
	}
	h := e.handles.find(placeOf(e, m, to))
	if h == nil {
		return errUnresolved
	}
	copy(e.sends.UseBuffer(wr, len(m.Data)), m.Data)
	e.destinations[e.sends.Slot(wr.ID)] = *to
	h.last, wr.AH = wr.ID, h.ah
	wr.RemoteQPN, wr.RemoteQKey = to.QPN, to.QKey
	if to.QKey == 0 {
		wr.RemoteQKey = e.options.QKey
	}
	wr.Opcode, wr.ImmData = verbs.WRSend, m.Imm
	if m.HasImm {
		wr.Opcode = verbs.WRSendWithImm
	}
	return nil
}

// destination returns the destination address of a message.
func (e *Endpoint) destination(m *Message) *Addr {
	if m.To.GID.IsZero() && m.To.QPN == 0 {
		return &e.peer
	}
	return &m.To
}

// pollFull polls for free buffers, and returns an error if none is free.
func (e *Endpoint) pollFull(now time.Duration) error {
	if err := e.sends.Poll(now); err != nil {
		return err
	}
	full := false
	e.sends.Do(func(p transport.Progress) { full = p.Outstanding() == e.options.SendDepth && e.check() == nil })
	if full {
		return fmt.Errorf("send: %w: all %d send buffers are in use; try again, or use SendBatch, which waits", verbs.ErrQueueFull, e.options.SendDepth)
	}
	return nil
}
