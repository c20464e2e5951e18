// SPDX-License-Identifier: Apache-2.0

package region

import (
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
)

// Pieces is the memory of a scatter/gather list, or of a part of it.
type Pieces struct {
	all []piece
	// Length is the length of the whole list, in bytes.
	Length int
	// Signed is true if Find has failed because some of the memory belongs to a region with signatures.
	Signed bool
}

// piece is a contiguous range of bytes.
type piece struct {
	memory []byte // shorter than size in a null region
	size   int
}

// Scatter writes a payload to the pieces from offset on.
func (p *Pieces) Scatter(offset int, payload []byte) {
	for _, to := range p.all {
		if offset >= to.size {
			offset -= to.size
			continue
		}
		n := min(to.size-offset, len(payload))
		copy(to.memory[min(offset, len(to.memory)):], payload[:n])
		payload = payload[n:]
		offset = 0
	}
}

// Gather copies the pieces to to, which must be at least as long.
func (p *Pieces) Gather(to []byte) {
	for _, from := range p.all {
		here := to[:from.size]
		clear(here[copy(here, from.memory):])
		to = to[len(here):]
	}
}

// First returns the first piece; nil for an empty list.
func (p *Pieces) First() []byte {
	if len(p.all) == 0 {
		return nil
	}
	return p.all[0].memory
}

func (p *Pieces) reset() {
	p.all, p.Length, p.Signed = p.all[:0], 0, false
}

func (p *Pieces) add(memory []byte, n int) { p.all = append(p.all, piece{memory, n}) }

// Only replaces the pieces by a single one.
func (p *Pieces) Only(memory []byte) {
	p.reset()
	p.add(memory, len(memory))
	p.Length = len(memory)
}

// Find sets the pieces to the memory of a list from offset on, at most length bytes. It returns false if access to some
// of the list is not permitted, or sets Signed.
func (p *Pieces) Find(t *Table, list ring.SGList, pd PD, write bool, offset, length int) bool {
	p.reset()
	if sge, rest, some := list.Next(); some && len(rest) == 0 && offset == 0 { // the usual case
		if memory := t.whole(sge, pd, write); len(memory) > 0 {
			p.Length = len(memory)
			p.add(memory[:min(len(memory), length)], min(len(memory), length))
			return true
		}
	}
	return p.findEach(t, list, pd, write, offset, length)
}

// findEach is Find for any list and offset.
func (p *Pieces) findEach(t *Table, list ring.SGList, pd PD, write bool, offset, length int) bool {
	for sge, rest, some := list.Next(); some; sge, rest, some = rest.Next() {
		size := int(sge.Length)
		p.Length += size
		from := min(offset, size)
		offset -= from
		if size == 0 {
			continue
		}
		here := min(size-from, length)
		if !p.findParts(t, sge, pd, write, from, here) {
			return false
		}
		length -= here
	}
	return true
}

// findParts finds the memory of an SGE that may be in several pieces, or in a null region.
func (p *Pieces) findParts(t *Table, sge ib.SGE, pd PD, write bool, from, length int) bool {
	for {
		part, n, ok := t.Find(sge, from, length, pd, write)
		if !ok {
			return false
		}
		if n == 0 && length > 0 {
			p.Signed = true
			return false
		}
		if n > 0 {
			p.add(part, n)
		}
		from, length = from+n, length-n
		if length == 0 {
			return true
		}
	}
}
