package ud

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// helloPause is between two hellos at first; it doubles each time, up to longestPause.
const (
	helloPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// Hello finds a peer by a group: it sends the hello there, again and again until somebody answers or
// ctx is done, and gives the answer, whose From is the peer. Whoever is to be found has
// joined the group, and answers hellos by Message.Reply. Other messages to groups that come
// meanwhile are passed over.
//
// The endpoint needs not be a member. It is best called before anything else is received.
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
func (e *Endpoint) recvAnswer(ctx context.Context, patience time.Duration) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		m, err := e.Recv(ctx)
		if err != nil || !m.To.IsGroup() {
			return m, err
		}
		m.Release()
	}
}
