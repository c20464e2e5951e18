// SPDX-License-Identifier: Apache-2.0

//go:build linux

package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/roced/roced/internal/unit"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// Do implements provider.Provider.
func (c *Client) Do(ctx context.Context, code provider.Code, request, grant any) error {
	if run, found := commands[code.Number]; found {
		return run(ctx, c, request, grant)
	}
	return c.pass(ctx, code, request, grant)
}

// pass passes a command to the service, and waits for the reply.
func (c *Client) pass(ctx context.Context, code provider.Code, request, grant any) error {
	command, found := proto.ByNumber(code.Number)
	if !found {
		return fmt.Errorf("%w: command %d (%s) has no messages in package proto", verbs.ErrUnsupported, code.Number, code.Name)
	}
	if code.Waits {
		return c.passAndWait(ctx, command, request, grant)
	}
	if isClosed(c.closing) {
		return verbs.ErrClosed
	}
	err := c.exchange(context.Background(), command, request, grant, false)
	if code.Frees && isClosed(c.ended) && errors.Is(err, verbs.ErrDeviceFatal) {
		return nil // the end of the connection has freed the object
	}
	return err
}

// passAndWait passes a command that may wait. When ctx is done the command is cancelled; its result is the reply's.
func (c *Client) passAndWait(ctx context.Context, command *proto.Untyped, request, grant any) error {
	select {
	case c.waits <- struct{}{}:
		defer func() { <-c.waits }()
	case <-c.closing:
	case <-ctx.Done():
		return ctx.Err()
	}
	if isClosed(c.closing) {
		return verbs.ErrClosed
	}
	err := c.exchange(ctx, command, request, grant, false)
	if ended := ctx.Err(); err != nil && ended != nil && verbs.KindOf(err) == nil {
		return ended
	}
	return err
}

// exchange sends a request and waits for its reply, or for the end of the connection. When ctx is done it sends a Cancel
// and continues to wait, or, with mayGiveUp, returns an error.
func (c *Client) exchange(ctx context.Context, command *proto.Untyped, request, grant any, mayGiveUp bool) error {
	descriptors, err := c.exchangeRights(ctx, command, request, grant, mayGiveUp)
	proto.CloseAll(descriptors) // no descriptors are expected
	return err
}

// exchangeRights is exchange for a reply that carries descriptors.
func (c *Client) exchangeRights(ctx context.Context, command *proto.Untyped, request, grant any, mayGiveUp bool) (descriptors []int, err error) {
	id, answers := c.enter()
	defer c.leave(id)
	packet, err := command.EncodeRequest(id, request)
	if err != nil {
		return nil, err
	}
	if err := c.conn.Send(packet); err != nil {
		_ = c.socket.Close() // the goroutine that reads detects it too
		<-c.ended
		return nil, c.gone()
	}
	a, err := c.await(ctx, id, answers, mayGiveUp)
	if err != nil {
		return nil, err
	}
	return a.descriptors, c.decode(command, a, grant)
}

func (c *Client) await(ctx context.Context, id uint32, answers chan answer, mayGiveUp bool) (answer, error) {
	cancelled := ctx.Done()
	for {
		select {
		case a := <-answers:
			return a, nil
		case <-c.ended:
			select {
			case a := <-answers: // it arrived before
				return a, nil
			default:
				return answer{}, c.gone()
			}
		case <-cancelled:
			if mayGiveUp {
				return answer{}, fmt.Errorf("%w: the service does not respond: %w; %s", verbs.ErrHost, ctx.Err(), unit.Answering())
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

func (c *Client) decode(command *proto.Untyped, a answer, grant any) error {
	if a.message.Kind == proto.Failure {
		return failureOf(a.message)
	}
	if a.message.Code != command.Number {
		return fmt.Errorf("%w: %w: the reply is for another command", verbs.ErrHost, proto.ErrMalformed)
	}
	if err := command.DecodeGrant(a.message.Body, c.memory, grant); err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrHost, err)
	}
	return nil
}

// enter returns a new id for a request, and the channel of its reply.
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

// gone returns the error of a command that gets no reply.
func (c *Client) gone() error {
	if err := c.Err(); err != nil {
		return err
	}
	return verbs.ErrDeviceFatal
}
