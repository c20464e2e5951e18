// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"fmt"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// Recv waits for a message until ctx is done. The message is the caller's until its Release.
// ErrKept if the program holds all buffers.
func (e *Endpoint) Recv(ctx context.Context) (Message, error) {
	if e == nil {
		return Message{}, fmt.Errorf("receive: %w", errNil)
	}
	var one [1]Message
	_, err := e.RecvBatch(ctx, one[:])
	return one[0], err
}

// RecvBatch waits for messages, and returns those that are available: at most 64, and as many as fit. It
// returns their number: at least 1 if the error is nil. Endpoint.Release releases them together.
func (e *Endpoint) RecvBatch(ctx context.Context, messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("receive: %w", errNil)
	}
	if err := ctx.Err(); err != nil {
		return 0, e.life.Explain(err)
	}
	wait := func(done []verbs.WC) (int, error) { return transport.Wait(ctx, e.recvCQ, e.options.Spin, done) }
	for len(messages) > 0 {
		if n, err := e.take(messages, wait); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// Poll is RecvBatch, but does not wait: 0 if there are no messages.
func (e *Endpoint) Poll(messages []Message) (int, error) {
	if e == nil {
		return 0, fmt.Errorf("poll: %w", errNil)
	}
	if len(messages) == 0 {
		return 0, nil
	}
	return e.take(messages, e.recvCQ.Poll)
}

// take receives messages. It returns 0 and no error if all messages were discarded because they were not from the peer.
func (e *Endpoint) take(messages []Message, fetch func([]verbs.WC) (int, error)) (n int, err error) {
	if failed := e.failed.Load(); failed != nil {
		return 0, e.life.Explain(*failed)
	}
	taken := 0
	n, err = e.receives.Take(len(messages), fetch, func(wc *verbs.WC, loan transport.Loan) bool {
		if !e.accept(&messages[taken], wc, loan) {
			return false
		}
		taken++
		return true
	})
	if n > 0 {
		return n, nil // the next call returns the error
	}
	if failed := e.failed.Load(); err == nil && failed != nil {
		err = *failed
	}
	return 0, e.life.Explain(err)
}

// accept fills a message from a completion, unless the completion has failed or its sender is not the peer. It assigns
// field by field: a composite literal would be built on the stack and copied.
func (e *Endpoint) accept(m *Message, wc *verbs.WC, loan transport.Loan) bool {
	if wc.Status != verbs.WCSuccess {
		err := fmt.Errorf("receive: %w", wc.Err())
		e.failed.CompareAndSwap(nil, &err)
		return false
	}
	grh, payload := wc.Payload(e.receives.Data(loan, wc.ByteLen))
	source, dest := grh.Addresses()
	if peer := &e.peer; !peer.IsZero() && !peer.IsGroup() && (source != peer.GID || wc.SrcQP != peer.QPN) {
		e.strays.Add(1)
		return false
	}
	number := wc.QPN
	if dest.IsMulticast() {
		number = verbs.MulticastQPN
	}
	m.Data = payload
	m.From.GID, m.From.QPN, m.From.QKey = source, wc.SrcQP, e.options.QKey
	m.To.GID, m.To.QPN, m.To.QKey = dest, number, e.options.QKey
	m.Imm, m.HasImm = wc.ImmData, wc.Flags&verbs.WCWithImm != 0
	m.endpoint, m.loan = e, loan
	return true
}

// Release returns the buffers of messages to the endpoint.
func (e *Endpoint) Release(messages []Message) {
	if e == nil {
		return
	}
	e.receives.Return(len(messages), func(i int) transport.Loan { return messages[i].takeLoan(e) })
}
