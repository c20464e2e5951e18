package hca

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
)

// ListenID implements verbs.Provider.
func (s *Session) ListenID(r verbs.ListenIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := i.in("listen with", idBound); err != nil {
			return err
		}
		if i.space == wire.PortSpaceTCP {
			return errConnections
		}
		if err := s.card.host.portSpaces().alone(i.binding); err != nil {
			return err
		}
		err := i.useCM(func(m *cm.Manager, _ time.Time) (err error) {
			i.listener, err = m.Listen(cm.ListenConfig{
				Service: wire.ServiceIDFor(i.space, i.source.Port()), Address: i.listensAt(), Backlog: r.Backlog, Owner: i,
			})
			return err
		})
		if err == nil {
			i.state = idListening
		}
		return err
	})
}

// listensAt is the address as the connection manager's listener has it.
func (i *id) listensAt() netip.Addr {
	address := i.source.Addr()
	if address.IsUnspecified() && !i.afonly {
		return netip.Addr{}
	}
	return address.WithZone("")
}

// takeRequest makes the new id for the event of a request, which the program is getting; false if there
// is none: then the request is rejected. The caller holds card.mu.
func (i *id) takeRequest(e *verbs.CMEvent) bool {
	var request *cm.Request
	card := i.session.card
	if i.listener != nil {
		card.withCM(func(*cm.Manager, time.Time) { request = i.listener.Next() })
	}
	if request == nil {
		return false
	}
	child, err := i.session.newID(i.channel, i.space, i.kind)
	if err == nil {
		err = child.useCM(func(*cm.Manager, time.Time) error { return nil })
	}
	if err != nil {
		card.withCM(func(_ *cm.Manager, now time.Time) { _ = request.Reply(now, cm.Answer{Status: wire.SIDRReject}) })
		card.log.Debug("a request was rejected: its id cannot be made", "device", card.Name(), "peer", request.Source, "error", err)
		if child != nil {
			i.session.ids.remove(child.handle)
			i.session.endID(child)
		}
		return false
	}
	child.request, child.state, child.tos = request, idConnecting, i.tos
	child.source, child.dest, child.ends = request.Dest, request.Source, pair{request.Path.Local, request.Path.Remote}
	e.ID, e.Listener = child.handle, i.handle
	e.AH, e.PrivateData = card.attrOf(child.ends, child.tos), request.PrivateData[:]
	return true
}

// AcceptID implements verbs.Provider. If it fails, the request is rejected.
func (s *Session) AcceptID(r verbs.AcceptIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		err := i.toAnswer("accept with")
		if err != nil {
			return err
		}
		switch {
		case r.Response:
			err = fmt.Errorf("%w: accept a request without parameters; a response, which takes none, has not come", verbs.ErrInvalid)
		case r.Param.QPN <= wire.QPNGSI || r.Param.QPN >= verbs.MulticastQPN:
			err = fmt.Errorf("%w: accept with queue pair %v; the number of one is needed, that of the id's or of another", verbs.ErrInvalid, r.Param.QPN)
		default:
			err = i.answer(cm.Answer{Status: wire.SIDRValid, QPN: r.Param.QPN, QKey: i.keyFor(r.Param.QKey), PrivateData: r.Param.PrivateData})
		}
		if err != nil {
			_ = i.answer(cm.Answer{Status: wire.SIDRReject}) // it has not been answered, and this is short
		}
		return err
	})
}

// keyFor is the Q_Key that the peer is told: 0 stands for that of the id.
func (i *id) keyFor(asked wire.QKey) wire.QKey {
	if asked == 0 {
		return i.qkey
	}
	return asked
}

// RejectID implements verbs.Provider.
func (s *Session) RejectID(r verbs.RejectIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := i.toAnswer("reject with"); err != nil {
			return err
		}
		return i.answer(cm.Answer{Status: wire.SIDRReject, PrivateData: r.PrivateData})
	})
}

// toAnswer checks that the id stands for a request that was not answered.
func (i *id) toAnswer(what string) error {
	if err := i.in(what, idConnecting); err != nil {
		return err
	}
	if i.request == nil {
		return fmt.Errorf("%w: %s an id that stands for no request, or for one that was answered", verbs.ErrInvalid, what)
	}
	return nil
}

// answer answers the request.
func (i *id) answer(a cm.Answer) (err error) {
	i.session.card.withCM(func(_ *cm.Manager, now time.Time) { err = i.request.Reply(now, a) })
	if err == nil {
		i.request = nil
	}
	return err
}
