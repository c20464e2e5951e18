package datapath

import "github.com/roced/roced/datapath/ring"

// MW is the engine's entry of a memory window: a key of its own to a part of a region, with access of its
// own. It is bound and invalidated by requests (IBA 10.6.7).
type MW struct {
	PD    PD
	Type2 bool // bound to a queue pair, and invalidated by its program or its peer

	key    ring.RKey // it is bound under; counts only while of is set
	of     *MR       // it is bound to; nil: it is not bound
	base   uint64
	memory []byte
	access ring.AccessFlags
	qp     *QP // of type 2: only packets for it may use the window
}

// SetMW puts a memory window at its handle's place; nil clears the place. Regions and windows share their
// handles' places, so that a key names one or the other. It runs in Do.
func (s *Session) SetMW(handle uint32, mw *MW) {
	place, _ := SplitHandle(handle)
	s.mws = grow(s.mws, int(place))
	if old := s.mws[place]; old != nil {
		old.unbind()
	}
	s.mws[place] = mw
}

// Windows is how many memory windows are bound to the region. It runs in Do.
func (m *MR) Windows() int { return m.windows }

func (w *MW) unbind() {
	if w.of != nil {
		w.of.windows--
	}
	w.of, w.memory, w.qp = nil, nil, nil
}
