//go:build linux

package hca

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// ListenID implements provider.Provider.
func (s *Session) ListenID(r provider.ListenIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := i.in("listen with", idBound); err != nil {
			return err
		}
		if err := s.card.ports.alone(i.binding); err != nil {
			return err
		}
		err := i.useCM(func(m *cm.Manager, _ time.Time) (err error) {
			i.listener, err = m.Listen(cm.ListenConfig{
				Service: i.service(i.source.Port()), Connections: i.kind == verbs.QPTypeRC, Address: i.listensAt(), Backlog: r.Backlog, Owner: i,
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
func (i *id) takeRequest(e *provider.CMEvent) bool {
	request, connection := i.nextRequest()
	if request == nil && connection == nil {
		return false
	}
	card := i.session.card
	child, err := i.newChild()
	if err != nil {
		card.withCM(func(_ *cm.Manager, now time.Time) { turnAway(request, connection, now) })
		card.log.Debug("a request was rejected: its id cannot be made", "device", card.Name(), "port", i.source.Port(), "error", err)
		return false
	}
	e.ID, e.Listener = child.handle, i.handle
	if connection != nil {
		card.withCM(func(*cm.Manager, time.Time) { e.ConnParam = child.standForConnection(connection) })
	} else {
		child.standFor(request)
		e.PrivateData = request.PrivateData[:]
	}
	e.AH = card.attrOf(child.ends, child.tos)
	return true
}

// nextRequest takes the oldest request that waits, for datagrams or for a connection; nil if none does.
func (i *id) nextRequest() (request *cm.Request, connection *cm.Connection) {
	if i.listener == nil {
		return nil, nil
	}
	i.session.card.withCM(func(*cm.Manager, time.Time) {
		if i.kind == verbs.QPTypeRC {
			connection = i.listener.NextConnection()
		} else {
			request = i.listener.Next()
		}
	})
	return request, connection
}

// turnAway rejects a request that no program has seen.
func turnAway(request *cm.Request, connection *cm.Connection, now time.Time) {
	if connection != nil {
		connection.Close(now)
	} else {
		_ = request.Reply(now, cm.Answer{Status: wire.SIDRReject}) // the first, and short
	}
}

// newChild makes an id for a request.
func (i *id) newChild() (*id, error) {
	child, err := i.session.newID(i.channel, i.space, i.kind)
	if err != nil {
		return nil, err
	}
	if err := child.useCM(func(*cm.Manager, time.Time) error { return nil }); err != nil {
		i.session.ids.remove(child.handle)
		i.session.endID(child)
		return nil, err
	}
	child.state, child.tos = idConnecting, i.tos
	return child, nil
}

func (i *id) standFor(r *cm.Request) {
	i.request = r
	i.source, i.dest, i.ends = r.Dest, r.Source, paths.Ends{Source: r.Path.Local, Dest: r.Path.Remote}
}

// standForConnection makes the id the connection's, and gives what the peer says. The connection manager is
// locked.
func (i *id) standForConnection(c *cm.Connection) verbs.ConnParam {
	i.connection, c.Owner = c, i
	i.source, i.dest, i.ends, i.tos = c.Dest, c.Source, paths.Ends{Source: c.Path.Local, Dest: c.Path.Remote}, c.Path.TrafficClass
	return c.Peer
}

// AcceptID implements provider.Provider. If it fails, the request is rejected. When it has accepted a response, the
// peer is told so before the program can send data.
func (s *Session) AcceptID(r provider.AcceptIDRequest) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.commands.Done()
	err := s.acceptWith(&r)
	if err == nil && r.Response {
		s.card.manager.sendNow()
	}
	return err
}

func (s *Session) acceptWith(r *provider.AcceptIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := i.toAnswer("accept with"); err != nil {
			return err
		}
		accept := i.accept
		if i.connection != nil {
			accept = i.acceptConnection
		}
		err := accept(r)
		if err != nil {
			_ = i.reject(nil) // it has not been answered, and this is short
		}
		return err
	})
}

func (i *id) accept(r *provider.AcceptIDRequest) error {
	if r.Response {
		return fmt.Errorf("%w: accept a request without parameters; a response, which takes none, has not come", verbs.ErrInvalid)
	}
	if err := checkNumber("accept", r.Param.QPN); err != nil {
		return err
	}
	return i.answer(cm.Answer{Status: wire.SIDRValid, QPN: r.Param.QPN, QKey: i.keyFor(r.Param.QKey), PrivateData: r.Param.PrivateData})
}

// acceptConnection accepts the request for a connection, or the response to one.
func (i *id) acceptConnection(r *provider.AcceptIDRequest) (err error) {
	card := i.session.card
	if r.Response {
		card.withCM(func(*cm.Manager, time.Time) { err = i.connection.Confirm() })
		return err
	}
	param := r.Param
	if err := checkNumber("accept", param.QPN); err != nil {
		return err
	}
	param.ResponderResources, param.InitiatorDepth = min(param.ResponderResources, maxRDAtomic), min(param.InitiatorDepth, maxRDAtomic)
	card.withCM(func(_ *cm.Manager, now time.Time) { err = i.connection.Accept(now, guid(card.status.MAC), param) })
	return err
}

// keyFor is the Q_Key that the peer is told: 0 stands for that of the id.
func (i *id) keyFor(asked wire.QKey) wire.QKey {
	if asked == 0 {
		return i.qkey
	}
	return asked
}

// RejectID implements provider.Provider.
func (s *Session) RejectID(r provider.RejectIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := i.toAnswer("reject with"); err != nil {
			return err
		}
		return i.reject(r.PrivateData)
	})
}

func (i *id) reject(privateData []byte) (err error) {
	if i.connection == nil {
		return i.answer(cm.Answer{Status: wire.SIDRReject, PrivateData: privateData})
	}
	i.session.card.withCM(func(_ *cm.Manager, now time.Time) { err = i.connection.Reject(now, privateData) })
	return err
}

// toAnswer checks that the id stands for a request that was not answered, or for a connection, which knows
// by itself what it can answer.
func (i *id) toAnswer(what string) error {
	if err := i.in(what, idConnecting); err != nil {
		return err
	}
	if i.request == nil && i.connection == nil {
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
