package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// ListenID implements verbs.Provider.
func (s *Session) ListenID(r verbs.ListenIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := i.in("listen with", idBound); err != nil {
			return err
		}
		return i.unbuilt()
	})
}

// ConnectID implements verbs.Provider.
func (s *Session) ConnectID(r verbs.ConnectIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := i.in("connect", idRouteResolved); err != nil {
			return err
		}
		return i.unbuilt()
	})
}

// AcceptID implements verbs.Provider.
func (s *Session) AcceptID(r verbs.AcceptIDRequest) error {
	return s.withID(r.ID, func(i *id) error { return i.in("accept with", idConnecting) })
}

// RejectID implements verbs.Provider.
func (s *Session) RejectID(r verbs.RejectIDRequest) error {
	return s.withID(r.ID, func(i *id) error { return i.in("reject with", idConnecting) })
}

// DisconnectID implements verbs.Provider.
func (s *Session) DisconnectID(r verbs.DisconnectIDRequest) error {
	return s.withID(r.ID, func(i *id) error { return i.in("disconnect", idConnecting) })
}

// NotifyID implements verbs.Provider. It is about connections, which there are none of.
func (s *Session) NotifyID(r verbs.NotifyIDRequest) error {
	return s.withID(r.ID, func(i *id) error {
		return fmt.Errorf("%w: event %v of an id without a connection", verbs.ErrInvalid, r.Event)
	})
}

// unbuilt refuses what would begin a connection.
func (i *id) unbuilt() error {
	if i.space == wire.PortSpaceTCP {
		return fmt.Errorf("%w: connections (port space TCP); datagrams have port space UDP", verbs.ErrUnsupported)
	}
	return fmt.Errorf("%w: learning of queue pairs by connection management", verbs.ErrUnsupported)
}
