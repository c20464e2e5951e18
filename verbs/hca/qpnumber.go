//go:build linux

package hca

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"

	"github.com/roced/roced/datapath/wire"
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

func (s *qpNumbers) take(free func(place wire.QPN) bool) wire.QPN {
	for {
		number := s.encrypt(s.count)
		s.count++
		if place := number % numberPlaces; place > wire.QPNGSI && place != numberPlaces-1 && free(place) {
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
