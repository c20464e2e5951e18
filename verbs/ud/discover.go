// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
)

// repeatPause is the first pause between two copies of a request. It doubles each time, up to longestPause.
const (
	repeatPause  = 50 * time.Millisecond
	longestPause = time.Second
)

// Discover finds a peer through a group. It sends data to the group repeatedly, until a member replies or ctx is done,
// and returns the reply, whose From is the peer's address. The peer must have joined the group, and respond with
// Message.Reply. The endpoint need not be a member.
//
// Call it before other messages are expected: it discards messages to groups that arrive meanwhile, and accepts any
// message to this endpoint as the reply. ErrInvalid of package verbs if group is not a group.
func (e *Endpoint) Discover(ctx context.Context, group Addr, data []byte) (Message, error) {
	if e == nil {
		return Message{}, fmt.Errorf("discover: %w", errNil)
	}
	if to := e.destination(&Message{To: group}); !to.IsGroup() {
		return Message{}, fmt.Errorf("discover by %v: %w: not the address of a group; use Request for queue pairs", *to, verbs.ErrInvalid)
	}
	return repeat(ctx, e, "discover by", group, data, func(m *Message) bool { return !m.To.IsGroup() })
}

// Request sends data to a queue pair repeatedly, until the reply arrives or ctx is done. The first pause is 50 ms; it
// doubles each time, up to a second. The reply is the first message from the queue pair for which isReply is true; a
// nil isReply accepts any message. A request may arrive more than once, and so may its reply: both should carry a
// number that isReply compares.
//
// Other messages that arrive meanwhile are discarded, so no other goroutine should receive from the endpoint.
func (e *Endpoint) Request(ctx context.Context, to Addr, data []byte, isReply func(*Message) bool) (Message, error) {
	if e == nil {
		return Message{}, fmt.Errorf("request: %w", errNil)
	}
	from := *e.destination(&Message{To: to})
	if from.IsGroup() {
		return Message{}, fmt.Errorf("request to %v: %w: the address of a group; use Discover for groups", from, verbs.ErrInvalid)
	}
	return repeat(ctx, e, "request to", to, data, func(m *Message) bool {
		return m.From.GID == from.GID && m.From.QPN == from.QPN && (isReply == nil || isReply(m))
	})
}

// repeat sends a message until its reply arrives.
func repeat(ctx context.Context, e *Endpoint, what string, to Addr, data []byte, isReply func(*Message) bool) (Message, error) {
	for pause := repeatPause; ; pause = min(2*pause, longestPause) {
		if err := e.Send(ctx, to, data); err != nil {
			return Message{}, fmt.Errorf("%s %v: %w", what, to, bare(err))
		}
		reply, err := recvReply(ctx, e, pause, isReply)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return reply, err
		}
	}
}

// recvReply waits for the reply, and discards other messages.
func recvReply(ctx context.Context, e *Endpoint, timeout time.Duration, isReply func(*Message) bool) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		m, err := e.Recv(ctx)
		if err != nil || isReply(&m) {
			return m, err
		}
		m.Release()
	}
}
