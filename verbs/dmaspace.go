package verbs

import (
	"reflect"
	"slices"
	"sync"
)

// dmaSpace finds the region that memory of the program's belongs to. Regions of the session's own memory do not overlap.
type dmaSpace struct {
	mu     sync.RWMutex
	pieces []spacePiece // by address
}

// spacePiece is a region's memory. It keeps the region, and so the memory, where it is.
type spacePiece struct {
	from, to uintptr
	mr       *MR
}

func addressOf(memory []byte) uintptr { return reflect.ValueOf(memory).Pointer() }

func (s *dmaSpace) add(mr *MR, memory []byte) {
	if len(memory) == 0 {
		return
	}
	from := addressOf(memory)
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.pieces, from, comparePiece)
	s.pieces = slices.Insert(s.pieces, i, spacePiece{from, from + uintptr(len(memory)), mr})
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

// remove forgets a region's memory, before the session may use it for another.
func (s *dmaSpace) remove(mr *MR, memory []byte) {
	if len(memory) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i, found := slices.BinarySearchFunc(s.pieces, addressOf(memory), comparePiece); found && s.pieces[i].mr == mr {
		s.pieces = slices.Delete(s.pieces, i, i+1)
	}
}

// find gives the region whose memory holds these bytes, and where in it they begin; nil if there is none.
func (s *dmaSpace) find(memory []byte) (mr *MR, offset uint64) {
	from := addressOf(memory)
	s.mu.RLock()
	defer s.mu.RUnlock()
	i, found := slices.BinarySearchFunc(s.pieces, from, comparePiece)
	if !found || uintptr(len(memory)) > s.pieces[i].to-from {
		return nil, 0
	}
	return s.pieces[i].mr, uint64(from - s.pieces[i].from)
}
