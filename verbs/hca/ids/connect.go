// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// ConnectID carries out provider.ConnectID: it requests a connection to the destination, or in port space UDP the
// number of its queue pair (SIDR).
func (s *Session) ConnectID(r provider.ConnectIDRequest) error {
	return s.withID(r.ID, func(i *ID) error {
		if err := errors.Join(i.in("connect", idRouteResolved), i.room()); err != nil {
			return err
		}
		if i.ends.Dest.IsMulticast() {
			return fmt.Errorf("%w: connect to a group, which has no queue pair of its own; join it", verbs.ErrInvalid)
		}
		if i.kind == verbs.QPTypeXRCRecv {
			return fmt.Errorf("%w: connect an id for XRC_RECV: a target only listens; connect an id for XRC_SEND", verbs.ErrInvalid)
		}
		// A program may listen at a local destination now that did not when the address was resolved.
		source, dest, err := s.manager.Ports.meet(s.manager.Card, i.space, i.source.Addr(), i.dest)
		if err == nil && dest != i.dest {
			i.source, i.dest = netip.AddrPortFrom(source, i.source.Port()), dest
			i.ends, err = endsOf(s.manager.Card, source, dest.Addr())
		}
		if err != nil {
			return err
		}
		ask := i.ask
		if i.connects() {
			ask = i.connect
		}
		err = ask(&r.Param)
		if err == nil {
			i.state = idConnecting
		}
		return err
	})
}

// ask requests the queue pair of a datagram service.
func (i *ID) ask(param *ib.ConnParam) error {
	return i.useCM(func(m *cm.Manager, now time.Time) (err error) {
		i.inquiry, err = m.Ask(now, cm.AskConfig{
			Path:    i.datagramPath(),
			Service: i.service(i.dest.Port()), Source: i.source, Dest: i.dest, PrivateData: param.PrivateData, Owner: i,
		})
		return err
	})
}

// datagramPath returns the path of the messages.
func (i *ID) datagramPath() cm.Path {
	return cm.Path{Local: i.ends.Source, Remote: i.ends.Dest, TrafficClass: i.tos}
}

// connectionPath returns the path of the queue pair's packets.
func (i *ID) connectionPath() cm.Path {
	path := i.datagramPath()
	path.HopLimit, path.FlowLabel = wire.DefaultHopLimit, cm.FlowLabel(i.source.Port(), i.dest.Port())
	if i.given != nil {
		path.HopLimit, path.FlowLabel = cmp.Or(i.given.GRH.HopLimit, path.HopLimit), i.given.GRH.FlowLabel
	}
	return path
}

// connect requests a connection. The program owns the queue pair; only its number is needed.
func (i *ID) connect(param *ib.ConnParam) error {
	if err := errors.Join(checkNumber("connect", param.QPN), checkResources(param)); err != nil {
		return err
	}
	card := i.session.manager.Card
	config := cm.ConnectConfig{
		Path:    i.connectionPath(),
		Service: i.service(i.dest.Port()), Source: i.source, Dest: i.dest,
		GUID: card.GUID(), MTU: i.path.MTU(card.ActiveMTU()), Type: i.kind, SL: i.route().SL, AckTimeout: i.ackTimeout, Param: *param, Owner: i,
	}
	config.Param.ResponderResources = min(param.ResponderResources, MaxRDAtomic)
	config.Param.InitiatorDepth = min(param.InitiatorDepth, MaxRDAtomic)
	return i.useCM(func(m *cm.Manager, now time.Time) (err error) {
		i.connection, err = m.Connect(now, config)
		return err
	})
}

// MaxRDAtomic is the maximum number of outstanding READs and atomics of a queue pair, in each direction.
const MaxRDAtomic = 16

// checkResources rejects more outstanding READs and atomics than the card supports, as librdmacm does.
func checkResources(p *ib.ConnParam) error {
	for name, n := range map[string]uint8{"ResponderResources": p.ResponderResources, "InitiatorDepth": p.InitiatorDepth} {
		if n > MaxRDAtomic && n != ib.MaxCMResources {
			return fmt.Errorf("%w: connect with %s of %d; the device supports %d, and MaxResources requests all", verbs.ErrInvalid, name, n, MaxRDAtomic)
		}
	}
	return nil
}

// checkNumber rejects the number of a queue pair that a peer cannot send to.
func checkNumber(what string, qpn wire.QPN) error {
	if qpn <= wire.QPNGSI || qpn >= verbs.MulticastQPN {
		return fmt.Errorf("%w: %s with queue pair %v; give the number of the id's queue pair, or of another", verbs.ErrInvalid, what, qpn)
	}
	return nil
}

// service returns the service ID of a port, for the connection manager.
func (i *ID) service(port uint16) wire.ServiceID { return wire.ServiceIDFor(i.space, port) }

// useCM starts the id's use of the connection manager, until leaveCM.
func (i *ID) useCM(do func(m *cm.Manager, now time.Time) error) error {
	manager := i.session.manager
	if err := manager.Use(); err != nil {
		return err
	}
	var err error
	manager.With(func(m *cm.Manager, now time.Time) { err = do(m, now) })
	if err != nil {
		manager.Leave()
		return err
	}
	i.usesCM = true
	return nil
}

// leaveCM ends the id's use of the connection manager: an unanswered request is rejected on its behalf, and its
// connection ends. Calling it again has no effect.
func (i *ID) leaveCM() {
	if !i.usesCM {
		return
	}
	i.session.manager.With(func(_ *cm.Manager, now time.Time) {
		if i.inquiry != nil {
			i.inquiry.Cancel()
		}
		if i.listener != nil {
			i.listener.Close(now)
		}
		if i.request != nil {
			_ = i.request.Reply(now, cm.Answer{Status: wire.SIDRReject}) // the first answer, without private data, so it cannot fail
		}
		if i.connection != nil {
			i.connection.Close(now)
		}
	})
	i.inquiry, i.listener, i.request, i.connection, i.usesCM = nil, nil, nil, nil, false
	i.session.manager.Leave()
}

// CMEvent implements Owner.
func (i *ID) CMEvent(e cm.Event) {
	i.session.mu.Lock()
	defer i.session.mu.Unlock()
	switch {
	case !i.usesCM:
	case e.Kind == cm.EventRequest || e.Kind == cm.EventWithdrawn:
		i.showRequests()
	default:
		i.put(&idEvent{CMEvent: i.eventOf(&e)})
	}
}

// eventOf returns the program's event for an event of the connection manager.
func (i *ID) eventOf(e *cm.Event) provider.CMEvent {
	switch e.Kind {
	case cm.EventReply:
		return i.answered(&e.Answer)
	case cm.EventResponse:
		return provider.CMEvent{Type: ib.CMEventConnectResponse, ConnParam: e.Peer}
	case cm.EventEstablished:
		return provider.CMEvent{Type: ib.CMEventEstablished}
	case cm.EventRejected:
		return provider.CMEvent{Type: ib.CMEventRejected, Status: int32(e.Reason), ConnParam: e.Peer}
	case cm.EventDisconnected:
		event := provider.CMEvent{Type: ib.CMEventDisconnected}
		if e.Unanswered { // like the kernel's cma
			event.Status = -int32(unix.ETIMEDOUT)
		}
		return event
	case cm.EventTimewaitExit:
		return provider.CMEvent{Type: ib.CMEventTimewaitExit}
	}
	return provider.CMEvent{Type: ib.CMEventUnreachable, Status: -int32(unix.ETIMEDOUT)}
}

// answered returns the event for an answer.
func (i *ID) answered(a *cm.Answer) provider.CMEvent {
	if a.Status != wire.SIDRValid {
		return provider.CMEvent{Type: ib.CMEventUnreachable, Status: int32(a.Status), ConnParam: ib.ConnParam{PrivateData: a.PrivateData}}
	}
	return provider.CMEvent{
		Type: ib.CMEventEstablished, AH: i.route(),
		ConnParam: ib.ConnParam{QPN: a.QPN, QKey: a.QKey, PrivateData: a.PrivateData},
	}
}

// DisconnectID carries out provider.DisconnectID. Datagrams have no connection, and no peer to notify.
func (s *Session) DisconnectID(r provider.DisconnectIDRequest) error {
	return s.withID(r.ID, func(i *ID) error {
		err := i.in("disconnect", idConnecting)
		if err == nil && i.connection != nil {
			s.manager.With(func(_ *cm.Manager, now time.Time) { i.connection.Disconnect(now) })
		}
		return err
	})
}

// NotifyID carries out provider.NotifyID: a packet that arrived before the peer's RTU establishes the connection.
func (s *Session) NotifyID(r provider.NotifyIDRequest) error {
	return s.withID(r.ID, func(i *ID) (err error) {
		if i.connection == nil || r.Event != verbs.EventCommEst {
			return fmt.Errorf("%w: event %v; %v of a connection's queue pair is the only one to notify of", verbs.ErrInvalid, r.Event, verbs.EventCommEst)
		}
		s.manager.With(func(*cm.Manager, time.Time) { err = i.connection.Establish() })
		return err
	})
}
