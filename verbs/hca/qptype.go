package hca

import (
	"fmt"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
)

// checkType refuses types of queue pairs that there are not, and a GSI queue pair for a program that
// may not have one.
func (s *Session) checkType(r *verbs.CreateQPRequest) error {
	switch r.Type {
	case verbs.QPTypeUD:
		return nil
	case verbs.QPTypeGSI:
		return s.checkGSI(r)
	case verbs.QPTypeSMI:
		return fmt.Errorf("%w: QP 0 (SMI, type 0) is for InfiniBand's subnet management, which RoCE does not have; set Type to UD (%d)", verbs.ErrUnsupported, verbs.QPTypeUD)
	case verbs.QPTypeRC, verbs.QPTypeUC, verbs.QPTypeRawPacket, verbs.QPTypeXRCSend, verbs.QPTypeXRCRecv:
		return fmt.Errorf("%w: queue pairs of type %v; UD (%d) is there, and GSI (%d) once a card", verbs.ErrUnsupported, r.Type, verbs.QPTypeUD, verbs.QPTypeGSI)
	}
	return fmt.Errorf("%w: no type of queue pairs has the number %d; UD (%d) is there, and GSI (%d) once a card", verbs.ErrInvalid, r.Type, verbs.QPTypeUD, verbs.QPTypeGSI)
}

func (s *Session) checkGSI(r *verbs.CreateQPRequest) error {
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
	return s.card.manager.yield()
}

// returnGSI gives QP 1 back. The caller may hold Card.mu.
func (s *Session) returnGSI(kind verbs.QPType) {
	if kind == verbs.QPTypeGSI && !s.internal {
		s.card.manager.regain()
	}
}

// numberFor gives a new queue pair its number. The caller holds mu.
func (card *Card) numberFor(kind verbs.QPType) wire.QPN {
	if kind != verbs.QPTypeGSI {
		return card.numbers.take(func(n wire.QPN) bool { return card.qpsByPlace[n] == nil })
	}
	return wire.QPNGSI // manager.yield has seen to it that nobody has it
}
