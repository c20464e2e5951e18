// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/admin"
	"golang.org/x/sys/unix"
)

// commands are the handlers of a session's commands, by number. The table lists those for which the service does more than
// pass them to the session.
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
	registers(proto.RegMR, processFile),
	reregisters(proto.ReregMRMemory, processFile),
	registers(proto.RegFileMR, passedFile),
	reregisters(proto.ReregFileMR, passedFile),
	handler{proto.PassFile.Number, passFile},
	handler{proto.OpenXRCD.Number, openXRCD},
))

// inspections are the handlers of commands that need no session.
var inspections = tableOf(
	inspects(proto.ListClients, (*admin.View).ListClients),
	inspects(proto.ListObjects, (*admin.View).ListObjects),
	inspects(proto.ListIDs, (*admin.View).ListIDs),
	inspects(proto.ReadCounters, (*admin.View).ReadCounters),
	inspects(proto.LookDevice, (*admin.View).QueryDevice),
	handler{proto.NextEvents.Number, nextEvents},
	handler{proto.StartCapture.Number, startCapture},
	manages(proto.AddSocket, addSocket),
	manages(proto.RemoveSocket, removeSocket),
)

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
	case inspections[m.Code].run != nil:
		return inspections[m.Code].run(c, m)
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

// nextEvents waits for events of the service, in a goroutine of its own.
func nextEvents(c *connection, m proto.Message) error {
	if _, err := proto.NextEvents.DecodeRequest(m.Body); err != nil {
		return err
	}
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if err := c.view.Monitor(); err != nil {
		return c.fail(m, err)
	}
	return c.runInBackground(proto.NextEvents.Untyped, m, func(ctx context.Context, grant any) (err error) {
		*grant.(*proto.Events), err = c.view.NextEvents(ctx)
		return err
	})
}

// startCapture hands the end of a stream of packets over.
func startCapture(c *connection, m proto.Message) error {
	r, err := proto.StartCapture.DecodeRequest(m.Body)
	if err != nil {
		return err
	}
	if err := c.socket.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	end, err := c.view.StartCapture(r)
	if err != nil {
		return c.fail(m, err)
	}
	defer unix.Close(end)
	return c.reply(proto.StartCapture.Untyped, m.ID, &proto.None{}, end)
}

// addSocket makes the socket of a container.
func addSocket(c *connection, r proto.Socket) (proto.Socket, error) {
	if err := c.mayManage(); err != nil {
		return r, err
	}
	path, err := c.server.AddSocket(r.Name)
	return proto.Socket{Name: r.Name, Path: path}, err
}

// removeSocket removes the socket of a container.
func removeSocket(c *connection, r proto.Socket) (none proto.None, err error) {
	if err := c.mayManage(); err != nil {
		return none, err
	}
	return none, c.server.RemoveSocket(r.Name)
}

func (c *connection) mayManage() error {
	if !c.peer.SeesAll() {
		return fmt.Errorf("%w: sockets of containers are made by root and the service's user", verbs.ErrPermission)
	}
	return nil
}
