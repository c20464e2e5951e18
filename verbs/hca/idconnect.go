//go:build linux

package hca

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// ConnectID implements provider.Provider: it asks the destination for a connection, or in port space UDP for
// its queue pair (SIDR).
func (s *Session) ConnectID(r provider.ConnectIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := errors.Join(i.in("connect", idRouteResolved), i.room()); err != nil {
			return err
		}
		if i.ends.Dest.IsMulticast() {
			return fmt.Errorf("%w: connect to a group, which has no queue pair of its own; join it", verbs.ErrInvalid)
		}
		ask := i.ask
		if i.kind == verbs.QPTypeRC {
			ask = i.connect
		}
		err := ask(&r.Param)
		if err == nil {
			i.state = idConnecting
		}
		return err
	})
}

// ask asks for the queue pair of a service of datagrams.
func (i *id) ask(param *verbs.ConnParam) error {
	return i.useCM(func(m *cm.Manager, now time.Time) (err error) {
		i.inquiry, err = m.Ask(now, cm.AskConfig{
			Path:    cm.Path{Local: i.ends.Source, Remote: i.ends.Dest, TrafficClass: i.tos},
			Service: i.service(i.dest.Port()), Source: i.source, Dest: i.dest, PrivateData: param.PrivateData, Owner: i,
		})
		return err
	})
}

// connect asks for a connection. The queue pair is the program's affair; its number is what is needed.
func (i *id) connect(param *verbs.ConnParam) error {
	if err := errors.Join(checkNumber("connect", param.QPN), checkResources(param)); err != nil {
		return err
	}
	card := i.session.card
	config := cm.ConnectConfig{
		Path:    cm.Path{Local: i.ends.Source, Remote: i.ends.Dest, TrafficClass: i.tos, HopLimit: wire.DefaultHopLimit, FlowLabel: cm.FlowLabel(i.source.Port(), i.dest.Port())},
		Service: i.service(i.dest.Port()), Source: i.source, Dest: i.dest,
		GUID: guid(card.status.MAC), MTU: i.path.MTU(card.activeMTU), Param: *param, Owner: i,
	}
	config.Param.ResponderResources = min(param.ResponderResources, maxRDAtomic)
	config.Param.InitiatorDepth = min(param.InitiatorDepth, maxRDAtomic)
	return i.useCM(func(m *cm.Manager, now time.Time) (err error) {
		i.connection, err = m.Connect(now, config)
		return err
	})
}

// checkResources refuses to ask for more READs and atomics at once than the card can have, as librdmacm does.
func checkResources(p *verbs.ConnParam) error {
	for name, n := range map[string]uint8{"ResponderResources": p.ResponderResources, "InitiatorDepth": p.InitiatorDepth} {
		if n > maxRDAtomic && n != verbs.CMMaxResources {
			return fmt.Errorf("%w: connect with %s of %d; the device has %d, and MaxResources asks for all", verbs.ErrInvalid, name, n, maxRDAtomic)
		}
	}
	return nil
}

// checkNumber refuses the number of a queue pair that a peer cannot send to.
func checkNumber(what string, qpn wire.QPN) error {
	if qpn <= wire.QPNGSI || qpn >= verbs.MulticastQPN {
		return fmt.Errorf("%w: %s with queue pair %v; the number of one is needed, that of the id's or of another", verbs.ErrInvalid, what, qpn)
	}
	return nil
}

// service names a port to the connection manager.
func (i *id) service(port uint16) wire.ServiceID { return wire.ServiceIDFor(i.space, port) }

// useCM begins the id's use of the connection manager, until leaveCM. The caller holds card.mu, as with
// all that follows.
func (i *id) useCM(do func(m *cm.Manager, now time.Time) error) error {
	card := i.session.card
	if err := card.useCM(); err != nil {
		return err
	}
	var err error
	card.withCM(func(m *cm.Manager, now time.Time) { err = do(m, now) })
	if err != nil {
		card.leaveCM()
		return err
	}
	i.usesCM = true
	return nil
}

// leaveCM ends what the connection manager does for the id: a request that it has not answered is
// rejected in its name, and its connection ended. Calling it again does nothing.
func (i *id) leaveCM() {
	if !i.usesCM {
		return
	}
	i.session.card.withCM(func(_ *cm.Manager, now time.Time) {
		if i.inquiry != nil {
			i.inquiry.Cancel()
		}
		if i.listener != nil {
			i.listener.Close(now)
		}
		if i.request != nil {
			_ = i.request.Reply(now, cm.Answer{Status: wire.SIDRReject}) // the first, and short
		}
		if i.connection != nil {
			i.connection.Close(now)
		}
	})
	i.inquiry, i.listener, i.request, i.connection, i.usesCM = nil, nil, nil, nil, false
	i.session.card.leaveCM()
}

// cmEvent implements cmOwner.
func (i *id) cmEvent(e cm.Event) {
	card := i.session.card
	card.mu.Lock()
	defer card.mu.Unlock()
	switch {
	case !i.usesCM:
	case e.Kind == cm.EventRequest || e.Kind == cm.EventWithdrawn:
		i.showRequests()
	default:
		i.put(&idEvent{CMEvent: i.eventOf(&e)})
	}
}

// eventOf is an event of the connection manager as the program gets it.
func (i *id) eventOf(e *cm.Event) provider.CMEvent {
	switch e.Kind {
	case cm.EventReply:
		return i.answered(&e.Answer)
	case cm.EventResponse:
		return provider.CMEvent{Type: verbs.CMEventConnectResponse, ConnParam: e.Peer}
	case cm.EventEstablished:
		return provider.CMEvent{Type: verbs.CMEventEstablished}
	case cm.EventRejected:
		return provider.CMEvent{Type: verbs.CMEventRejected, Status: int32(e.Reason), ConnParam: e.Peer}
	case cm.EventDisconnected:
		return provider.CMEvent{Type: verbs.CMEventDisconnected}
	case cm.EventTimewaitExit:
		return provider.CMEvent{Type: verbs.CMEventTimewaitExit}
	}
	return provider.CMEvent{Type: verbs.CMEventUnreachable, Status: -int32(unix.ETIMEDOUT)}
}

// answered is the event of an answer.
func (i *id) answered(a *cm.Answer) provider.CMEvent {
	if a.Status != wire.SIDRValid {
		return provider.CMEvent{Type: verbs.CMEventUnreachable, Status: int32(a.Status), ConnParam: verbs.ConnParam{PrivateData: a.PrivateData}}
	}
	return provider.CMEvent{
		Type: verbs.CMEventEstablished, AH: i.session.card.attrOf(i.ends, i.tos),
		ConnParam: verbs.ConnParam{QPN: a.QPN, QKey: a.QKey, PrivateData: a.PrivateData},
	}
}

// DisconnectID implements provider.Provider. Datagrams have no connection: there is nobody to be told.
func (s *Session) DisconnectID(r provider.DisconnectIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		err := i.in("disconnect", idConnecting)
		if err == nil && i.connection != nil {
			s.card.withCM(func(_ *cm.Manager, now time.Time) { i.connection.Disconnect(now) })
		}
		return err
	})
}

// NotifyID implements provider.Provider: a packet that came before the peer's RTU establishes the connection.
func (s *Session) NotifyID(r provider.NotifyIDRequest) error {
	return s.withID(r.ID, func(i *id) (err error) {
		if i.connection == nil || r.Event != verbs.EventCommEst {
			return fmt.Errorf("%w: event %v; %v of a connection's queue pair is what there is to tell", verbs.ErrInvalid, r.Event, verbs.EventCommEst)
		}
		s.card.withCM(func(*cm.Manager, time.Time) { err = i.connection.Establish() })
		return err
	})
}
