package ud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/verbs"
)

// helloPause is the first pause between two hellos, or two questions; it doubles each time, up to
// longestPause.
const (
	helloPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Hello finds a peer through a group. It sends hello to the group repeatedly, until somebody answers
// or ctx is done, and returns the answer, whose From is the peer's address. The peer must have joined
// the group, and answer with Message.Reply. The endpoint need not be a member.
//
// Call it before other messages are expected: it discards messages to groups that come meanwhile, and
// takes any message to this endpoint for the answer. ErrInvalid of package verbs if group is not one.
func (e *Endpoint) Hello(ctx context.Context, group Addr, hello []byte) (Message, error) {
	if e == nil {
		return Message{}, fmt.Errorf("hello: %w", errNil)
	}
	if to := e.destination(&Message{To: group}); !to.IsGroup() {
		return Message{}, fmt.Errorf("hello to %v: %w: not the address of a group; Ask is for queue pairs", *to, verbs.ErrInvalid)
	}
	return e.repeat(ctx, "hello to", group, hello, func(m *Message) bool { return !m.To.IsGroup() })
}

// Ask sends a question to a queue pair repeatedly, after 50 ms at first and then after twice as long
// each time up to a second, until the answer comes or ctx is done. The answer is the first message
// from there for which isAnswer is true; nil stands for any. A question may arrive more than once, and
// so may its answer: both should carry a number that isAnswer compares.
//
// Other messages that come meanwhile are discarded, so nothing else should receive from the endpoint.
func (e *Endpoint) Ask(ctx context.Context, to Addr, question []byte, isAnswer func(*Message) bool) (Message, error) {
	if e == nil {
		return Message{}, fmt.Errorf("ask: %w", errNil)
	}
	from := *e.destination(&Message{To: to})
	if from.IsGroup() {
		return Message{}, fmt.Errorf("ask %v: %w: the address of a group; Hello is for groups", from, verbs.ErrInvalid)
	}
	return e.repeat(ctx, "ask", to, question, func(m *Message) bool {
		return m.From.GID == from.GID && m.From.QPN == from.QPN && (isAnswer == nil || isAnswer(m))
	})
}

// repeat sends a message until its answer comes.
func (e *Endpoint) repeat(ctx context.Context, what string, to Addr, data []byte, isAnswer func(*Message) bool) (Message, error) {
	for pause := helloPause; ; pause = min(2*pause, longestPause) {
		if err := e.Send(ctx, to, data); err != nil {
			return Message{}, fmt.Errorf("%s %v: %w", what, to, bare(err))
		}
		answer, err := e.recvAnswer(ctx, pause, isAnswer)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return answer, err
		}
	}
}

// recvAnswer waits for the answer, and discards other messages.
func (e *Endpoint) recvAnswer(ctx context.Context, timeout time.Duration, isAnswer func(*Message) bool) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		m, err := e.Recv(ctx)
		if err != nil || isAnswer(&m) {
			return m, err
		}
		m.Release()
	}
}
