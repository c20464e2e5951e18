//go:build linux

package hca

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"

	"fmt"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// qpNumbers hands out queue pair numbers. The low bits are the place in the engine's table, so no two queue
// pairs share them. The numbers are a count, encrypted: none comes again before all others have come, so that
// packets for a queue pair that was destroyed do not reach another; and who knows some of them, a program or
// a peer, knows none of the others.
type qpNumbers struct {
	count  uint32
	secret cipher.Block
}

func newQPNumbers() qpNumbers {
	var key [16]byte
	_, _ = rand.Read(key[:])           // never fails
	secret, _ := aes.NewCipher(key[:]) // as this only fails for other lengths of a key
	return qpNumbers{secret: secret}
}

const numberPlaces = 1 << 16

func (s *qpNumbers) take(fits func(number wire.QPN) bool) wire.QPN {
	for {
		number := s.encrypt(s.count)
		s.count++
		if place := number % numberPlaces; place > wire.QPNGSI && place != numberPlaces-1 && fits(number) {
			return number
		}
	}
}

// encrypt is a permutation of the numbers of 24 bits: a Feistel network over two halves.
func (s *qpNumbers) encrypt(count uint32) wire.QPN {
	const halfBits, half = 12, 1<<12 - 1
	left, right := count>>halfBits&half, count&half
	for round := range byte(10) {
		block := [aes.BlockSize]byte{round}
		binary.LittleEndian.PutUint32(block[1:], right)
		s.secret.Encrypt(block[:], block[:])
		left, right = right, left^uint32(binary.LittleEndian.Uint16(block[:]))&half
	}
	return wire.QPN(left<<halfBits | right)
}

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

// preferTries is how many numbers are tried for one that the queue pair's engine prefers.
const preferTries = 64

// numberFor gives a new queue pair of an engine its number. The caller holds mu.
func (card *Card) numberFor(kind verbs.QPType, e *datapath.Engine) wire.QPN {
	if kind != verbs.QPTypeGSI {
		tries := 0
		return card.numbers.take(func(number wire.QPN) bool {
			tries++
			return card.qpsByPlace[number%numberPlaces] == nil && (tries > preferTries || e.Prefers(number))
		})
	}
	return wire.QPNGSI // Manager.Yield has seen to it that nobody has it
}
