// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"os"
	"time"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/admin"
)

// handler carries out a command.
type handler struct {
	number uint16
	run    func(*connection, proto.Message) error
}

func tableOf(list ...handler) map[uint16]handler {
	table := map[uint16]handler{}
	for _, h := range list {
		table[h.number] = h
	}
	return table
}

// function carries out a command of a session. Request and grant are pointers to the command's types.
type function func(ctx context.Context, s *hca.Session, request, grant any) error

// passes returns the handler of a command that is passed to the session.
func passes(command *proto.Untyped) handler {
	do := func(ctx context.Context, s *hca.Session, request, grant any) error {
		return s.Do(ctx, command.Code, request, grant)
	}
	if command.Waits {
		return waits(command, do)
	}
	return runs(command, do)
}

// grants returns the handler of a command that do carries out.
func grants[Q, G any](command proto.Command[Q, G], do func(*hca.Session, Q) (G, error)) handler {
	return runs(command.Untyped, func(_ context.Context, s *hca.Session, request, grant any) (err error) {
		*grant.(*G), err = do(s, *request.(*Q))
		return err
	})
}

// runs returns the handler of a command that is carried out at once.
func runs(command *proto.Untyped, do function) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		request, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		grant := command.NewGrant()
		return c.answer(command, m, grant, do(context.Background(), c.session, request, grant))
	}}
}

// waits returns the handler of a command that may take long, and that the client can cancel.
func waits(command *proto.Untyped, do function) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		request, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		return c.runInBackground(command, m, func(ctx context.Context, grant any) error {
			return do(ctx, c.session, request, grant)
		})
	}}
}

// runInBackground carries out a command that may wait in a goroutine of its own, and answers it there.
func (c *connection) runInBackground(command *proto.Untyped, m proto.Message, do func(ctx context.Context, grant any) error) error {
	w, err := c.waiting.start(m.ID)
	if err != nil {
		return c.fail(m, err)
	}
	m.Body = nil // it is the next message's
	c.background.Go(func() {
		grant := command.NewGrant()
		var err error
		f := fault.Contain(func() { err = do(w, grant) })
		c.waiting.end(m.ID)
		if f != nil {
			err = c.faulted(m, f)
		} else {
			err = c.answer(command, m, grant, err)
		}
		if err != nil {
			c.hangUp()
		}
	})
	return nil
}

// handsOver returns the handler of a command whose grant has a descriptor: the program's end of a channel.
func handsOver[G any](command proto.Command[proto.None, G], end func(*G) *os.File) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		if _, err := command.DecodeRequest(m.Body); err != nil {
			return err
		}
		var grant G
		if err := c.session.Do(context.Background(), command.Code, &proto.None{}, &grant); err != nil {
			return c.fail(m, err)
		}
		file := end(&grant)
		defer file.Close()
		raw, err := file.SyscallConn()
		if err != nil {
			return err
		}
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = c.reply(command.Untyped, m.ID, &grant, int(fd)) }); err != nil {
			return err
		}
		return failed
	}}
}

// inspects returns the handler of a command that inspects the service.
func inspects[Q, G any](command proto.Command[Q, G], do func(*admin.View, Q) (G, error)) handler {
	return manages(command, func(c *connection, request Q) (G, error) { return do(c.view, request) })
}

// manages returns the handler of a command that needs no session. Its connection may be without one for any time.
func manages[Q, G any](command proto.Command[Q, G], do func(*connection, Q) (G, error)) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		request, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		grant, err := do(c, request)
		return c.answer(command.Untyped, m, &grant, err)
	}}
}
