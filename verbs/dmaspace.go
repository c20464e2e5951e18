// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"reflect"
	"slices"
	"sync"
)

// dmaSpace finds the region that contains given memory of the program. Regions of the session's own memory do not
// overlap.
type dmaSpace struct {
	mu   sync.RWMutex
	runs [][]spacePiece // sorted by address, across and within runs; none is empty
}

// maxRun limits the pieces of a run, so that adding and removing a piece is cheap for any number of regions.
const maxRun = 512

// spacePiece is a region's memory. Its reference to the region keeps the memory in place.
type spacePiece struct {
	from, to uintptr
	mr       *MR
}

func addressOf(memory []byte) uintptr { return reflect.ValueOf(memory).Pointer() }

// at returns the position of the piece that contains an address, or of the first one after it.
func (s *dmaSpace) at(from uintptr) (run, place int, found bool) {
	run, _ = slices.BinarySearchFunc(s.runs, from, func(pieces []spacePiece, from uintptr) int {
		return comparePiece(pieces[len(pieces)-1], from)
	})
	if run == len(s.runs) {
		return run, 0, false
	}
	place, found = slices.BinarySearchFunc(s.runs[run], from, comparePiece)
	return run, place, found
}

func comparePiece(p spacePiece, from uintptr) int {
	if p.to <= from {
		return -1
	}
	if p.from > from {
		return 1
	}
	return 0
}

func (s *dmaSpace) add(mr *MR, memory []byte) {
	if len(memory) == 0 {
		return
	}
	from := addressOf(memory)
	piece := spacePiece{from, from + uintptr(len(memory)), mr}
	s.mu.Lock()
	defer s.mu.Unlock()
	run, place, _ := s.at(from)
	switch {
	case len(s.runs) == 0:
		s.runs = [][]spacePiece{{piece}}
		return
	case run == len(s.runs): // after all runs
		run--
		place = len(s.runs[run])
	}
	pieces := slices.Insert(s.runs[run], place, piece)
	if s.runs[run] = pieces; len(pieces) > maxRun {
		half := len(pieces) / 2
		s.runs = slices.Insert(s.runs, run+1, slices.Clone(pieces[half:]))
		s.runs[run] = slices.Delete(pieces, half, len(pieces))
	}
}

// remove removes a region's memory, before the session may use it for another region.
func (s *dmaSpace) remove(mr *MR, memory []byte) {
	if len(memory) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	run, place, found := s.at(addressOf(memory))
	if !found || s.runs[run][place].mr != mr {
		return
	}
	if s.runs[run] = slices.Delete(s.runs[run], place, place+1); len(s.runs[run]) == 0 {
		s.runs = slices.Delete(s.runs, run, run+1)
	}
}

// find returns the region that contains these bytes and their offset in it, or nil.
func (s *dmaSpace) find(memory []byte) (mr *MR, offset uint64) {
	from := addressOf(memory)
	s.mu.RLock()
	defer s.mu.RUnlock()
	run, place, found := s.at(from)
	if !found {
		return nil, 0
	}
	piece := s.runs[run][place]
	if uintptr(len(memory)) > piece.to-from {
		return nil, 0
	}
	return piece.mr, uint64(from - piece.from)
}
