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

// commands are those of a session, by their codes.
var commands = tableOf(
	grants(proto.QueryDevice, asks((*hca.Session).QueryDevice)),
	grants(proto.QueryPort, (*hca.Session).QueryPort),
	grants(proto.QueryGIDTable, firstGIDs),
	grants(proto.QueryPKey, (*hca.Session).QueryPKey),
	grants(proto.QueryRTValues, asks((*hca.Session).QueryRTValues)),
	grants(proto.Counters, asks((*hca.Session).Counters)),
	waits(proto.GetAsyncEvent, func(s *hca.Session, ctx context.Context, _ proto.None) (provider.EventReport, error) {
		return s.GetAsyncEvent(ctx)
	}),
	opensAsyncEvents(proto.OpenAsyncEvents, givenRange),
	opensAsyncEvents(proto.OpenEveryAsyncEvent, everyEvent),
	handler{proto.CloseAsyncEvents.Code, closeAsyncEvents},
	grants(proto.AllocPD, asks((*hca.Session).AllocPD)),
	does(proto.DeallocPD, (*hca.Session).DeallocPD),
	grants(proto.AllocMR, (*hca.Session).AllocMR),
	does(proto.ReregMR, (*hca.Session).ReregMR),
	does(proto.DeregMR, (*hca.Session).DeregMR),
	grants(proto.CreateCounters, asks((*hca.Session).CreateCounters)),
	does(proto.AttachCounters, (*hca.Session).AttachCounters),
	grants(proto.ReadQPCounters, (*hca.Session).ReadCounters),
	does(proto.DestroyCounters, (*hca.Session).DestroyCounters),
	grants(proto.AllocNullMR, (*hca.Session).AllocNullMR),
	grants(proto.AllocFastMR, (*hca.Session).AllocFastMR),
	does(proto.MapFMR, (*hca.Session).MapFMR),
	does(proto.UnmapFMR, (*hca.Session).UnmapFMR),
	grants(proto.CheckMRStatus, (*hca.Session).CheckMRStatus),
	grants(proto.AllocCoherent, (*hca.Session).AllocCoherent),
	grants(proto.AllocDM, (*hca.Session).AllocDM),
	does(proto.FreeDM, (*hca.Session).FreeDM),
	grants(proto.RegDMMR, (*hca.Session).RegDMMR),
	grants(proto.AllocMW, (*hca.Session).AllocMW),
	does(proto.DeallocMW, (*hca.Session).DeallocMW),
	handsOver(proto.CreateCompChannel, (*hca.Session).CreateCompChannel, func(g *provider.CreateCompChannelGrant) *os.File { return g.Events }),
	does(proto.DestroyCompChannel, (*hca.Session).DestroyCompChannel),
	grants(proto.CreateCQ, (*hca.Session).CreateCQ),
	grants(proto.ResizeCQ, (*hca.Session).ResizeCQ),
	does(proto.ModifyCQ, (*hca.Session).ModifyCQ),
	does(proto.CheckCQ, (*hca.Session).CheckCQ),
	does(proto.DestroyCQ, (*hca.Session).DestroyCQ),
	grants(proto.CreateSRQ, (*hca.Session).CreateSRQ),
	grants(proto.ModifySRQ, (*hca.Session).ModifySRQ),
	grants(proto.QuerySRQ, (*hca.Session).QuerySRQ),
	does(proto.DestroySRQ, (*hca.Session).DestroySRQ),
	grants(proto.CreateQP, (*hca.Session).CreateQP),
	grants(proto.ModifyQP, (*hca.Session).ModifyQP),
	grants(proto.QueryQP, (*hca.Session).QueryQP),
	does(proto.DestroyQP, (*hca.Session).DestroyQP),
	handler{proto.ShareMemory.Code, shareMemory},
	registers(proto.RegMR, inProcessFile),
	reregisters(proto.ReregMRMemory, inProcessFile),
	registers(proto.RegFileMR, inPassedFile),
	reregisters(proto.ReregFileMR, inPassedFile),
	handler{proto.PassFile.Code, passFile},
	handler{proto.OpenXRCD.Code, openXRCD},
	does(proto.CloseXRCD, (*hca.Session).CloseXRCD),
	grants(proto.CreateXRCSRQ, (*hca.Session).CreateXRCSRQ),
	grants(proto.CreateXRCTarget, (*hca.Session).CreateXRCTarget),
	grants(proto.OpenQP, (*hca.Session).OpenQP),
	waits(proto.CreateAH, (*hca.Session).CreateAH),
	waits(proto.ModifyAH, func(s *hca.Session, ctx context.Context, r provider.ModifyAHRequest) (proto.None, error) {
		return proto.None{}, s.ModifyAH(ctx, r)
	}),
	grants(proto.QueryAH, (*hca.Session).QueryAH),
	does(proto.DestroyAH, (*hca.Session).DestroyAH),
	does(proto.AttachMcast, (*hca.Session).AttachMcast),
	does(proto.DetachMcast, (*hca.Session).DetachMcast),
	grants(proto.JoinMulticast, (*hca.Session).JoinMulticast),
	does(proto.LeaveMulticast, (*hca.Session).LeaveMulticast),
	handsOver(proto.CreateEventChannel, (*hca.Session).CreateEventChannel, func(g *provider.CreateEventChannelGrant) *os.File { return g.Events }),
	does(proto.DestroyEventChannel, (*hca.Session).DestroyEventChannel),
	grants(proto.GetCMEvent, (*hca.Session).GetCMEvent),
	grants(proto.CreateID, (*hca.Session).CreateID),
	does(proto.DestroyID, (*hca.Session).DestroyID),
	does(proto.MigrateID, (*hca.Session).MigrateID),
	does(proto.SetIDOption, (*hca.Session).SetIDOption),
	grants(proto.QueryID, (*hca.Session).QueryID),
	grants(proto.BindID, (*hca.Session).BindID),
	grants(proto.FindRoute, (*hca.Session).FindRoute),
	does(proto.ResolveIDAddr, (*hca.Session).ResolveIDAddr),
	does(proto.ResolveIDRoute, (*hca.Session).ResolveIDRoute),
	does(proto.SetIDPath, (*hca.Session).SetIDPath),
	grants(proto.InitIDQPAttr, (*hca.Session).InitIDQPAttr),
	does(proto.ListenID, (*hca.Session).ListenID),
	does(proto.ConnectID, (*hca.Session).ConnectID),
	does(proto.AcceptID, (*hca.Session).AcceptID),
	does(proto.RejectID, (*hca.Session).RejectID),
	does(proto.DisconnectID, (*hca.Session).DisconnectID),
	does(proto.NotifyID, (*hca.Session).NotifyID),
	does(proto.JoinID, (*hca.Session).JoinID),
	grants(proto.LeaveID, (*hca.Session).LeaveID),
)

// firstGIDs gives as many lines of the GID table as a message has room for. An interface with more
// addresses is beyond what programs look through.
func firstGIDs(s *hca.Session, r provider.QueryGIDTableRequest) (provider.QueryGIDTableGrant, error) {
	grant, err := s.QueryGIDTable(r)
	grant.Entries = grant.Entries[:min(len(grant.Entries), proto.MaxGIDs)]
	return grant, err
}

// handler carries out a command.
type handler struct {
	code uint16
	run  func(*connection, proto.Message) error
}

func tableOf(list ...handler) map[uint16]handler {
	table := map[uint16]handler{}
	for _, h := range list {
		table[h.code] = h
	}
	return table
}

// grants is a command that gives something.
func grants[Q, G any](command proto.Command[Q, G], do func(*hca.Session, Q) (G, error)) handler {
	return handler{command.Code, func(c *connection, m proto.Message) error {
		request, err := command.DecodeRequest(m.Body)
		if err != nil {
			return err
		}
		grant, err := do(c.session, request)
		return answer(c, command, m, &grant, err)
	}}
}

// asks is a command without a request.
func asks[G any](do func(*hca.Session) (G, error)) func(*hca.Session, proto.None) (G, error) {
	return func(s *hca.Session, _ proto.None) (G, error) { return do(s) }
}

// does is a command that gives nothing.
func does[Q any](command proto.Command[Q, proto.None], do func(*hca.Session, Q) error) handler {
	return grants(command, func(s *hca.Session, request Q) (proto.None, error) { return proto.None{}, do(s, request) })
}

// waits is a command that may take long, and that the client can cancel. It has a goroutine.
func waits[Q, G any](command proto.Command[Q, G], do func(*hca.Session, context.Context, Q) (G, error)) handler {
	return handler{command.Code, func(c *connection, m proto.Message) error {
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
			var grant G
			var err error
			f := fault.Contain(func() { grant, err = do(c.session, w, request) })
			c.endWaiting(m.ID)
			if f != nil {
				err = c.faulted(m, f)
			} else {
				err = answer(c, command, m, &grant, err)
			}
			if err != nil {
				c.hangUp()
			}
		})
		return nil
	}}
}

// handsOver is a command whose grant has a descriptor: the program's end of a channel.
func handsOver[G any](command proto.Command[proto.None, G], do func(*hca.Session) (G, error), end func(*G) *os.File) handler {
	return handler{command.Code, func(c *connection, m proto.Message) error {
		if _, err := command.DecodeRequest(m.Body); err != nil {
			return err
		}
		grant, err := do(c.session)
		if err != nil {
			return c.fail(m, err)
		}
		file := end(&grant)
		defer file.Close()
		raw, err := file.SyscallConn()
		if err != nil {
			return err
		}
		var failed error
		if err := raw.Control(func(fd uintptr) { failed = reply(c, command, m.ID, &grant, int(fd)) }); err != nil {
			return err
		}
		return failed
	}}
}

func answer[Q, G any](c *connection, command proto.Command[Q, G], m proto.Message, grant *G, failed error) error {
	if failed != nil {
		return c.fail(m, failed)
	}
	return reply(c, command, m.ID, grant)
}

// request carries out a request. An error ends the connection.
func (c *connection) request(m proto.Message) error {
	switch {
	case m.Code == proto.Hello.Code:
		return c.hello(m)
	case !c.greeted:
		return fmt.Errorf("%w: a connection begins with a hello", proto.ErrMalformed)
	case m.Code == proto.OpenDevice.Code:
		return c.open(m)
	case m.Code == proto.ListDevices.Code:
		return c.listDevices(m)
	case looks[m.Code].run != nil:
		return looks[m.Code].run(c, m)
	case c.session == nil:
		return c.fail(m, fmt.Errorf("%w: command %d before a device is open", verbs.ErrInvalid, m.Code))
	case m.Code == proto.Close.Code:
		return c.close(m)
	}
	h, known := commands[m.Code]
	if !known {
		return c.fail(m, fmt.Errorf("%w: command %d; the service is older than the client", verbs.ErrUnsupported, m.Code))
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
	if err := reply(c, proto.Close, m.ID, &proto.None{}); err != nil {
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
