// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// ListenID carries out provider.ListenID.
func (s *Session) ListenID(r provider.ListenIDRequest) error {
	return s.withID(r.ID, func(i *ID) error {
		if err := i.in("listen with", idBound); err != nil {
			return err
		}
		if i.kind == verbs.QPTypeXRCSend {
			return fmt.Errorf("%w: listen with an id for XRC_SEND: an initiator connects; listen for XRC_RECV", verbs.ErrInvalid)
		}
		undo, err := s.manager.Ports.listen(i.binding)
		if err != nil {
			return err
		}
		err = i.useCM(func(m *cm.Manager, _ time.Time) (err error) {
			i.listener, err = m.Listen(cm.ListenConfig{
				Service: i.service(i.source.Port()), Connections: i.connects(), Type: i.kind, Address: i.listensAt(), Backlog: r.Backlog, Owner: i,
			})
			return err
		})
		if err != nil {
			undo()
			return err
		}
		i.state = idListening
		return nil
	})
}

// listensAt returns the address for the connection manager's listener.
func (i *ID) listensAt() netip.Addr {
	address := i.source.Addr()
	switch {
	case address.IsUnspecified() && !i.afonly:
		return netip.Addr{}
	case i.binding.local: // requests name an address of the card
		return anyAddress(address)
	}
	return address.WithZone("")
}

// takeRequest creates the new id for the event of a request that the program reads; it returns false if no request
// waits or the id cannot be created. Then the request is rejected.
func (i *ID) takeRequest(e *provider.CMEvent) bool {
	request, connection := i.nextRequest()
	if request == nil && connection == nil {
		return false
	}
	manager := i.session.manager
	child, err := i.newChild()
	if err != nil {
		manager.With(func(_ *cm.Manager, now time.Time) { turnAway(request, connection, now) })
		manager.Log.Debug("rejected a request: cannot create its id", "device", manager.Card.Name(), "port", i.source.Port(), "error", err)
		return false
	}
	e.ID, e.Listener = child.handle, i.handle
	if connection != nil {
		manager.With(func(*cm.Manager, time.Time) { e.ConnParam = child.standForConnection(connection) })
	} else {
		child.standFor(request)
		e.PrivateData = request.PrivateData[:]
	}
	e.AH = manager.Card.AHAttr(child.ends, child.tos)
	return true
}

// nextRequest dequeues the oldest waiting request, for datagrams or for a connection, or nil.
func (i *ID) nextRequest() (request *cm.Request, connection *cm.Connection) {
	if i.listener == nil {
		return nil, nil
	}
	i.session.manager.With(func(*cm.Manager, time.Time) {
		if i.connects() {
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
		_ = request.Reply(now, cm.Answer{Status: wire.SIDRReject}) // the first answer, without private data, so it cannot fail
	}
}

// newChild creates an id for a request.
func (i *ID) newChild() (*ID, error) {
	child, err := i.session.newID(i.channel, i.space, i.kind)
	if err != nil {
		return nil, err
	}
	if err := child.useCM(func(*cm.Manager, time.Time) error { return nil }); err != nil {
		i.session.ids.Remove(child.handle)
		i.session.endID(child)
		return nil, err
	}
	child.state, child.tos = idConnecting, i.tos
	return child, nil
}

func (i *ID) standFor(r *cm.Request) {
	i.request = r
	i.source, i.dest, i.ends = r.Dest, r.Source, paths.Ends{Source: r.Path.Local, Dest: r.Path.Remote}
}

// standForConnection makes the id the owner of the connection, and returns the peer's parameters. The connection
// manager is locked.
func (i *ID) standForConnection(c *cm.Connection) ib.ConnParam {
	i.connection, c.Owner = c, i
	i.source, i.dest, i.ends, i.tos = c.Dest, c.Source, paths.Ends{Source: c.Path.Local, Dest: c.Path.Remote}, c.Path.TrafficClass
	return c.Peer
}

// AcceptID carries out provider.AcceptID. If it fails, the request is rejected. When it has accepted a response, the
// peer is notified before the program can send data.
func (s *Session) AcceptID(r provider.AcceptIDRequest) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.work.Done()
	err := s.withID(r.ID, func(i *ID) error {
		if err := i.toAnswer("accept with"); err != nil {
			return err
		}
		accept := i.accept
		if i.connection != nil {
			accept = i.acceptConnection
		}
		err := accept(&r)
		if err != nil {
			_ = i.reject(nil) // it has not been answered, and has no private data, so this cannot fail
		}
		return err
	})
	if err == nil && r.Response {
		s.manager.sendNow()
	}
	return err
}

func (i *ID) accept(r *provider.AcceptIDRequest) error {
	if r.Response {
		return fmt.Errorf("%w: accept a request without parameters; only a response is accepted without, and none has come", verbs.ErrInvalid)
	}
	if err := checkNumber("accept", r.Param.QPN); err != nil {
		return err
	}
	return i.answer(cm.Answer{Status: wire.SIDRValid, QPN: r.Param.QPN, QKey: cmp.Or(r.Param.QKey, i.qkey), PrivateData: r.Param.PrivateData})
}

// acceptConnection accepts the request for a connection, or the response to one.
func (i *ID) acceptConnection(r *provider.AcceptIDRequest) (err error) {
	manager := i.session.manager
	if r.Response {
		manager.With(func(*cm.Manager, time.Time) { err = i.connection.Confirm() })
		return err
	}
	param := r.Param
	if err := checkNumber("accept", param.QPN); err != nil {
		return err
	}
	param.ResponderResources, param.InitiatorDepth = min(param.ResponderResources, MaxRDAtomic), min(param.InitiatorDepth, MaxRDAtomic)
	guid := manager.Card.GUID()
	manager.With(func(_ *cm.Manager, now time.Time) { err = i.connection.Accept(now, guid, param) })
	return err
}

// RejectID carries out provider.RejectID.
func (s *Session) RejectID(r provider.RejectIDRequest) error {
	return s.withID(r.ID, func(i *ID) error {
		if err := i.toAnswer("reject with"); err != nil {
			return err
		}
		return i.reject(r.PrivateData)
	})
}

func (i *ID) reject(privateData []byte) (err error) {
	if i.connection == nil {
		return i.answer(cm.Answer{Status: wire.SIDRReject, PrivateData: privateData})
	}
	i.session.manager.With(func(_ *cm.Manager, now time.Time) { err = i.connection.Reject(now, privateData) })
	return err
}

// toAnswer checks that the id represents an unanswered request, or a connection, which checks its own state.
func (i *ID) toAnswer(what string) error {
	if err := i.in(what, idConnecting); err != nil {
		return err
	}
	if i.request == nil && i.connection == nil {
		return fmt.Errorf("%w: %s an id without a request, or whose request was answered", verbs.ErrInvalid, what)
	}
	return nil
}

// answer answers the request.
func (i *ID) answer(a cm.Answer) (err error) {
	i.session.manager.With(func(_ *cm.Manager, now time.Time) { err = i.request.Reply(now, a) })
	if err == nil {
		i.request = nil
	}
	return err
}
