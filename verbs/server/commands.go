package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
)

// commands are those of a session, by their numbers. Listed are those for which the service does more than pass them to the
// session.
var commands = withOthers(tableOf(
	grants(proto.QueryGIDTable, firstGIDs),
	grants(proto.Counters, func(s *hca.Session, _ proto.None) ([]hca.Counter, error) { return s.Counters() }),
	waits(proto.GetAsyncEvent.Untyped, func(ctx context.Context, s *hca.Session, _, report any) (err error) {
		*report.(*provider.EventReport), err = s.GetAsyncEvent(ctx)
		return err
	}),
	opensAsyncEvents(proto.OpenAsyncEvents, givenRange),
	opensAsyncEvents(proto.OpenEveryAsyncEvent, everyEvent),
	handler{proto.CloseAsyncEvents.Number, closeAsyncEvents},
	handsOver(proto.CreateCompChannel, func(g *provider.CreateCompChannelGrant) *os.File { return g.Events }),
	handsOver(proto.CreateEventChannel, func(g *provider.CreateEventChannelGrant) *os.File { return g.Events }),
	handler{proto.ShareMemory.Number, shareMemory},
	registers(proto.RegMR, inProcessFile),
	reregisters(proto.ReregMRMemory, inProcessFile),
	registers(proto.RegFileMR, inPassedFile),
	reregisters(proto.ReregFileMR, inPassedFile),
	handler{proto.PassFile.Number, passFile},
	handler{proto.OpenXRCD.Number, openXRCD},
))

// withOthers adds all other commands of sessions, which are passed to the session.
func withOthers(table map[uint16]handler) map[uint16]handler {
	for _, command := range proto.All() {
		if _, own := table[command.Number]; command.OfSession && !own {
			table[command.Number] = passes(command)
		}
	}
	return table
}

// firstGIDs carries out QueryGIDTable: it returns as many lines of the GID table as fit into a message. Programs do not
// search through more addresses of an interface.
func firstGIDs(s *hca.Session, r provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error) {
	grant, err := provider.Do(s, provider.QueryGIDTable, r)
	grant.Entries = grant.Entries[:min(len(grant.Entries), proto.MaxGIDs)]
	return grant, err
}

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
		return answer(c, command, m, grant, do(context.Background(), c.session, request, grant))
	}}
}

// waits returns the handler of a command that may take long, and that the client can cancel. It has a goroutine.
func waits(command *proto.Untyped, do function) handler {
	return handler{command.Number, func(c *connection, m proto.Message) error {
		request, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		w, err := c.startWaiting(m.ID)
		if err != nil {
			return c.fail(m, err)
		}
		m.Body = nil // it is the next message's
		c.background.Go(func() {
			grant := command.NewGrant()
			var err error
			f := fault.Contain(func() { err = do(w, c.session, request, grant) })
			c.endWaiting(m.ID)
			if f != nil {
				err = c.faulted(m, f)
			} else {
				err = answer(c, command, m, grant, err)
			}
			if err != nil {
				c.hangUp()
			}
		})
		return nil
	}}
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
		if err := raw.Control(func(fd uintptr) { failed = reply(c, command.Untyped, m.ID, &grant, int(fd)) }); err != nil {
			return err
		}
		return failed
	}}
}

// answer sends the grant, or the error of a command that has failed.
func answer(c *connection, command *proto.Untyped, m proto.Message, grant any, failed error) error {
	if failed != nil {
		return c.fail(m, failed)
	}
	return reply(c, command, m.ID, grant)
}

// request carries out a request. An error ends the connection.
func (c *connection) request(m proto.Message) error {
	switch {
	case m.Code == proto.Hello.Number:
		return c.hello(m)
	case !c.greeted:
		return fmt.Errorf("%w: a connection begins with a hello", proto.ErrMalformed)
	case m.Code == proto.OpenDevice.Number:
		return c.open(m)
	case m.Code == proto.ListDevices.Number:
		return c.listDevices(m)
	case looks[m.Code].run != nil:
		return looks[m.Code].run(c, m)
	case c.session == nil:
		return c.fail(m, fmt.Errorf("%w: command %d before a device is open", verbs.ErrInvalid, m.Code))
	case m.Code == proto.Close.Number:
		return c.close(m)
	}
	h, known := commands[m.Code]
	if !known {
		return c.fail(m, fmt.Errorf("%w: command %d; the service is older than the client: update it", verbs.ErrUnsupported, m.Code))
	}
	return h.run(c, m)
}

// close closes the session and answers; then the connection is over.
func (c *connection) close(m proto.Message) error {
	if _, err := proto.Close.DecodeRequest(m.Body); err != nil {
		return err
	}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	if err := c.session.Close(); err != nil {
		return errors.Join(err, c.fail(m, err))
	}
	if err := reply(c, proto.Close.Untyped, m.ID, &proto.None{}); err != nil {
		return err
	}
	return c.awaitEnd()
}

// farewell is how long a client may take to hang up after it has closed its session.
const farewell = 5 * time.Second

// awaitEnd waits for the client to hang up: until then it may copy completions out of the memory.
func (c *connection) awaitEnd() error {
	if err := c.socket.SetReadDeadline(time.Now().Add(farewell)); err != nil {
		return err
	}
	for {
		if _, _, err := c.conn.Receive(); err != nil {
			return err
		}
	}
}
