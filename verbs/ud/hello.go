package ud

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// helloPause is the first pause between two hellos; it doubles each time, up to longestPause.
const (
	helloPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Hello finds a peer through a group. It sends hello to the group repeatedly, until somebody answers
// or ctx is done, and returns the answer, whose From is the peer's address. The peer must have joined
// the group, and answer with Message.Reply. The endpoint need not be a member.
//
// Call it before other messages are expected: it discards messages to groups that come meanwhile, and
// takes any message to this endpoint for the answer.
func (e *Endpoint) Hello(ctx context.Context, group Addr, hello []byte) (Message, error) {
	for pause := helloPause; ; pause = min(2*pause, longestPause) {
		if err := e.Send(ctx, group, hello); err != nil {
			return Message{}, fmt.Errorf("hello to %v: %w", group, err)
		}
		answer, err := e.recvAnswer(ctx, pause)
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return answer, err
		}
	}
}

// recvAnswer waits for a message that is for this endpoint alone.
func (e *Endpoint) recvAnswer(ctx context.Context, timeout time.Duration) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		m, err := e.Recv(ctx)
		if err != nil || !m.To.IsGroup() {
			return m, err
		}
		m.Release()
	}
}
