//go:build linux

package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/roced/roced/internal/unit"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// ask gives a command and waits for the answer.
func ask[Q, G any](c *Client, command proto.Command[Q, G], request Q) (grant G, err error) {
	if isClosed(c.closing) {
		return grant, verbs.ErrClosed
	}
	return exchange(context.Background(), c, command, &request, false)
}

// free gives a command that frees something. When the connection has ended, that is done already.
func free[Q any](c *Client, command proto.Command[Q, proto.None], request Q) error {
	_, err := ask(c, command, request)
	if isClosed(c.ended) && errors.Is(err, verbs.ErrDeviceFatal) {
		return nil
	}
	return err
}

// do gives a command that grants nothing.
func do[Q any](c *Client, command proto.Command[Q, proto.None], request Q) error {
	_, err := ask(c, command, request)
	return err
}

// askAndWait gives a command that may wait. When ctx is done it is cancelled; what counts is the answer.
func askAndWait[Q, G any](ctx context.Context, c *Client, command proto.Command[Q, G], request Q) (grant G, err error) {
	select {
	case c.waits <- struct{}{}:
		defer func() { <-c.waits }()
	case <-c.closing:
	case <-ctx.Done():
		return grant, ctx.Err()
	}
	if isClosed(c.closing) {
		return grant, verbs.ErrClosed
	}
	grant, err = exchange(ctx, c, command, &request, false)
	if ended := ctx.Err(); err != nil && ended != nil && verbs.KindOf(err) == nil {
		return grant, ended
	}
	return grant, err
}

// exchange sends a request and waits for its answer, or for the end of the connection. When ctx is done
// it sends a Cancel and waits on, or, if it may give up, returns.
func exchange[Q, G any](ctx context.Context, c *Client, command proto.Command[Q, G], request *Q, mayGiveUp bool) (grant G, err error) {
	grant, descriptors, err := exchangeRights(ctx, c, command, request, mayGiveUp)
	proto.CloseAll(descriptors) // there should be none
	return grant, err
}

// exchangeRights is exchange for a reply that carries descriptors.
func exchangeRights[Q, G any](ctx context.Context, c *Client, command proto.Command[Q, G], request *Q, mayGiveUp bool) (grant G, descriptors []int, err error) {
	id, answers := c.enter()
	defer c.leave(id)
	packet, err := command.EncodeRequest(id, request)
	if err != nil {
		return grant, nil, err
	}
	if err := c.conn.Send(packet); err != nil {
		_ = c.socket.Close() // the one who reads finds out too
		<-c.ended
		return grant, nil, c.gone()
	}
	a, err := c.await(ctx, id, answers, mayGiveUp)
	if err != nil {
		return grant, nil, err
	}
	grant, err = decode(c, command, a)
	return grant, a.descriptors, err
}

func (c *Client) await(ctx context.Context, id uint32, answers chan answer, mayGiveUp bool) (answer, error) {
	cancelled := ctx.Done()
	for {
		select {
		case a := <-answers:
			return a, nil
		case <-c.ended:
			select {
			case a := <-answers: // it came before
				return a, nil
			default:
				return answer{}, c.gone()
			}
		case <-cancelled:
			if mayGiveUp {
				return answer{}, fmt.Errorf("%w: the service does not answer: %w; %s", verbs.ErrHost, ctx.Err(), unit.Answering())
			}
			cancelled = nil
			_ = c.conn.Send(proto.EncodeCancel(id, reason(ctx)))
		}
	}
}

func reason(ctx context.Context) proto.CancelReason {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return proto.DeadlineExceeded
	}
	return proto.Canceled
}

func decode[Q, G any](c *Client, command proto.Command[Q, G], a answer) (grant G, err error) {
	if a.message.Kind == proto.Failure {
		return grant, failureOf(a.message)
	}
	if a.message.Code != command.Code {
		return grant, fmt.Errorf("%w: %w: an answer to another command", verbs.ErrHost, proto.ErrMalformed)
	}
	if grant, err = command.DecodeGrant(a.message.Body, c.memory); err != nil {
		err = fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	return grant, err
}

// enter makes a request's id.
func (c *Client) enter() (id uint32, answers chan answer) {
	answers = make(chan answer, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.lastID++; c.pending[c.lastID] != nil; c.lastID++ {
	}
	c.pending[c.lastID] = answers
	return c.lastID, answers
}

func (c *Client) leave(id uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// gone is why there is no answer.
func (c *Client) gone() error {
	if err := c.Err(); err != nil {
		return err
	}
	return verbs.ErrDeviceFatal
}
