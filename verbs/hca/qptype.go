//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// checkType refuses types of queue pairs that there are not, and a GSI queue pair for a program that
// may not have one.
func (s *Session) checkType(r *provider.CreateQPRequest) error {
	switch r.Type {
	case verbs.QPTypeUD, verbs.QPTypeRC, verbs.QPTypeUC:
		return nil
	case verbs.QPTypeGSI:
		return s.checkGSI(r)
	case verbs.QPTypeSMI:
		return fmt.Errorf("%w: QP 0 (SMI, type 0) is for InfiniBand's subnet management, which RoCE does not have; there are %s", verbs.ErrUnsupported, typesThere)
	case verbs.QPTypeRawPacket, verbs.QPTypeXRCSend, verbs.QPTypeXRCRecv:
		return fmt.Errorf("%w: queue pairs of type %v; there are %s", verbs.ErrUnsupported, r.Type, typesThere)
	}
	return fmt.Errorf("%w: no type of queue pairs has the number %d; there are %s", verbs.ErrInvalid, r.Type, typesThere)
}

const typesThere = "RC (2), UC (3), UD (4), and GSI (1) once a card"

// connected says whether the queue pair has one peer.
func (q *qp) connected() bool { return q.kind == verbs.QPTypeRC || q.kind == verbs.QPTypeUC }

func (s *Session) checkGSI(r *provider.CreateQPRequest) error {
	switch {
	case r.Port != 1:
		return fmt.Errorf("%w: port %d of the GSI queue pair; the device has port 1", verbs.ErrInvalid, r.Port)
	case !s.mayPrivileged():
		return fmt.Errorf("%w: QP 1 (GSI) has a Q_Key with the high bit set, which needs CAP_NET_RAW", verbs.ErrPermission)
	}
	return nil
}

// obtainGSI has the card's manager give QP 1 to a program that may have it. The caller holds no lock.
func (s *Session) obtainGSI(kind verbs.QPType) error {
	if kind != verbs.QPTypeGSI || s.internal {
		return nil
	}
	return s.card.manager.Yield()
}

// returnGSI gives QP 1 back. The caller may hold Card.mu.
func (s *Session) returnGSI(kind verbs.QPType) {
	if kind == verbs.QPTypeGSI && !s.internal {
		s.card.manager.Regain()
	}
}

// numberFor gives a new queue pair its number. The caller holds mu.
func (card *Card) numberFor(kind verbs.QPType) wire.QPN {
	if kind != verbs.QPTypeGSI {
		return card.numbers.take(func(place wire.QPN) bool { return card.qpsByPlace[place] == nil })
	}
	return wire.QPNGSI // Manager.Yield has seen to it that nobody has it
}
