// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handles

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"iter"
	"maps"

	"github.com/roced/roced/datapath/wire"
)

// Numbers maps the numbers of a card's queue pairs, or of its SRQs of type XRC, to the objects. The low bits are the
// place in the engine's table, so no two objects share them. New numbers are a count, encrypted: a number is not
// reused before all others were used, so packets for a destroyed queue pair do not reach another one; and a program or
// a peer that knows some numbers cannot derive others.
type Numbers[T any] struct {
	byPlace map[wire.QPN]*T
	count   uint32
	secret  cipher.Block
}

// NewNumbers returns an empty Numbers with its own secret.
func NewNumbers[T any]() *Numbers[T] {
	var key [16]byte
	_, _ = rand.Read(key[:])           // never fails
	secret, _ := aes.NewCipher(key[:]) // it fails only for other key lengths
	return &Numbers[T]{byPlace: map[wire.QPN]*T{}, secret: secret}
}

const places = 1 << 16

// Draw returns a new number, whose place is free.
func (n *Numbers[T]) Draw() wire.QPN {
	for {
		number := n.encrypt(n.count)
		n.count++
		if place := number % places; place > wire.QPNGSI && place != places-1 && n.byPlace[place] == nil {
			return number
		}
	}
}

// preferTries is the maximum number of draws for a preferred number.
const preferTries = 64

// DrawPreferred draws up to 64 numbers and returns the first that prefers accepts, or else any number.
func (n *Numbers[T]) DrawPreferred(prefers func(wire.QPN) bool) (number wire.QPN) {
	for range preferTries {
		if number = n.Draw(); prefers(number) {
			return number
		}
	}
	return n.Draw()
}

// Add adds an object with its number.
func (n *Numbers[T]) Add(number wire.QPN, object *T) { n.byPlace[number%places] = object }

// Remove frees the place of a number.
func (n *Numbers[T]) Remove(number wire.QPN) { delete(n.byPlace, number%places) }

// Len returns the number of objects.
func (n *Numbers[T]) Len() int { return len(n.byPlace) }

// All iterates over the objects, in random order.
func (n *Numbers[T]) All() iter.Seq[*T] { return maps.Values(n.byPlace) }

// encrypt is a permutation of the numbers of 24 bits: a Feistel network over two halves.
func (n *Numbers[T]) encrypt(count uint32) wire.QPN {
	const halfBits, half = 12, 1<<12 - 1
	left, right := count>>halfBits&half, count&half
	for round := range byte(10) {
		block := [aes.BlockSize]byte{round}
		binary.LittleEndian.PutUint32(block[1:], right)
		n.secret.Encrypt(block[:], block[:])
		left, right = right, left^uint32(binary.LittleEndian.Uint16(block[:]))&half
	}
	return wire.QPN(left<<halfBits | right)
}
