//go:build linux

package hca

import (
	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// checkType refuses types of queue pairs that there are not, and a GSI queue pair for a program that
// may not have one.
func checkType(s *Session, r *provider.CreateQPRequest) error {
	switch r.Type {
	case verbs.QPTypeUD, verbs.QPTypeRC, verbs.QPTypeUC, verbs.QPTypeXRCSend:
		return nil
	case verbs.QPTypeXRCRecv:
		return fmt.Errorf("%w: a queue pair of type XRC_RECV is its XRC domain's, which makes it", verbs.ErrInvalid)
	case verbs.QPTypeGSI:
		return checkGSI(s, r)
	case verbs.QPTypeSMI:
		return fmt.Errorf("%w: QP 0 (SMI, type 0) is for InfiniBand's subnet management, which RoCE does not have; there are %s", verbs.ErrUnsupported, typesThere)
	case verbs.QPTypeRawPacket:
		return fmt.Errorf("%w: queue pairs of type %v; there are %s", verbs.ErrUnsupported, r.Type, typesThere)
	}
	return fmt.Errorf("%w: no type of queue pairs has the number %d; there are %s", verbs.ErrInvalid, r.Type, typesThere)
}

const typesThere = "RC (2), UC (3), UD (4), XRC_SEND (9), XRC_RECV (10) in an XRC domain, and GSI (1) once a card"

// connected says whether the queue pair has one peer.
func (q *qp) connected() bool { return q.connection != nil }

func checkGSI(s *Session, r *provider.CreateQPRequest) error {
	switch {
	case r.Port != 1:
		return fmt.Errorf("%w: port %d of the GSI queue pair; the device has port 1", verbs.ErrInvalid, r.Port)
	case !s.mayPrivileged():
		return fmt.Errorf("%w: QP 1 (GSI) has a Q_Key with the high bit set, which needs CAP_NET_RAW", verbs.ErrPermission)
	}
	return nil
}

// obtainGSI has the card's manager give QP 1 to a program that may have it. The caller holds no lock.
func obtainGSI(s *Session, kind verbs.QPType) error {
	if kind != verbs.QPTypeGSI || s.internal {
		return nil
	}
	return s.card.manager.Yield()
}

// returnGSI gives QP 1 back. The caller may hold Card.mu.
func returnGSI(s *Session, kind verbs.QPType) {
	if kind == verbs.QPTypeGSI && !s.internal {
		s.card.manager.Regain()
	}
}

// numberFor returns the number of a new queue pair of an engine. The caller holds mu.
func (card *Card) numberFor(kind verbs.QPType, e *datapath.Engine) wire.QPN {
	if kind == verbs.QPTypeGSI {
		return wire.QPNGSI // Manager.Yield has checked that no program has it
	}
	return card.qps.DrawPreferred(e.Prefers)
}
