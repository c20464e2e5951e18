package hca

import (
	"errors"
	"fmt"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"golang.org/x/sys/unix"
)

// errConnections is for what would begin a connection.
var errConnections = fmt.Errorf("%w: connections (port space TCP); datagrams have port space UDP", verbs.ErrUnsupported)

// ConnectID implements verbs.Provider: it asks the destination for its queue pair (SIDR).
func (s *Session) ConnectID(r verbs.ConnectIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := errors.Join(i.in("connect", idRouteResolved), i.room()); err != nil {
			return err
		}
		if i.space == wire.PortSpaceTCP {
			return errConnections
		}
		if i.ends.dest.IsMulticast() {
			return fmt.Errorf("%w: connect to a group, which has no queue pair of its own; join it", verbs.ErrInvalid)
		}
		err := i.ask(r.Param.PrivateData)
		if err == nil {
			i.state = idConnecting
		}
		return err
	})
}

func (i *id) ask(privateData []byte) error {
	return i.useCM(func(m *cm.Manager, now time.Time) (err error) {
		i.inquiry, err = m.Ask(now, cm.AskConfig{
			Path:    cm.Path{Local: i.ends.source, Remote: i.ends.dest, TrafficClass: i.tos},
			Service: wire.ServiceIDFor(i.space, i.dest.Port()), Source: i.source, Dest: i.dest, PrivateData: privateData, Owner: i,
		})
		return err
	})
}

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
// rejected in its name. Calling it again does nothing.
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
	})
	i.inquiry, i.listener, i.request, i.usesCM = nil, nil, nil, false
	i.session.card.leaveCM()
}

// cmEvent implements cmOwner.
func (i *id) cmEvent(e cm.Event) {
	card := i.session.card
	card.mu.Lock()
	defer card.mu.Unlock()
	if !i.usesCM {
		return
	}
	switch e.Kind {
	case cm.EventRequest:
		i.put(&idEvent{CMEvent: verbs.CMEvent{Type: verbs.CMEventConnectRequest}})
	case cm.EventTimeout:
		i.put(&idEvent{CMEvent: verbs.CMEvent{Type: verbs.CMEventUnreachable, Status: -int32(unix.ETIMEDOUT)}})
	case cm.EventReply:
		i.put(&idEvent{CMEvent: i.answered(e.Answer)})
	}
}

// answered is the event of an answer.
func (i *id) answered(a cm.Answer) verbs.CMEvent {
	if a.Status != wire.SIDRValid {
		return verbs.CMEvent{Type: verbs.CMEventUnreachable, Status: int32(a.Status), PrivateData: a.PrivateData}
	}
	return verbs.CMEvent{
		Type: verbs.CMEventEstablished, AH: i.session.card.attrOf(i.ends, i.tos), QPN: a.QPN, QKey: a.QKey, PrivateData: a.PrivateData,
	}
}

// DisconnectID implements verbs.Provider. Datagrams have no connection: there is nobody to be told.
func (s *Session) DisconnectID(r verbs.DisconnectIDRequest) error {
	return s.withID(r.ID, func(i *id) error { return i.in("disconnect", idConnecting) })
}

// NotifyID implements verbs.Provider. It is about connections, which there are none of.
func (s *Session) NotifyID(r verbs.NotifyIDRequest) error {
	return s.withID(r.ID, func(*id) error {
		return fmt.Errorf("%w: event %v of an id without a connection", verbs.ErrInvalid, r.Event)
	})
}
