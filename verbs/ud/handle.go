package ud

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/roced/roced/verbs"
)

// place is the key of an address handle: its destination and, for replies, its source. The source is
// zero if it is chosen by the destination.
type place struct{ dest, source verbs.GID }

// handle is an address handle in use.
type handle struct {
	place place
	ah    *verbs.AH
	last  uint64        // message that named it
	turn  *list.Element // in handles.order
}

// handles are the resolved destinations, the most recently used one first. Those that were removed
// wait in retired until no outstanding message names them.
type handles struct {
	all     map[place]*handle
	order   list.List // of *handle
	last    *handle   // the last one found; nil if it was removed
	limit   int
	table   uint64 // how often the GID table has changed
	retired []*handle
	evicted uint64
}

func (h *handles) init(limit int) {
	h.all, h.limit = map[place]*handle{}, limit
}

// find gives the handle of a place, nil if there is none.
func (h *handles) find(p place) *handle {
	if h.last != nil && h.last.place == p {
		return h.last
	}
	found := h.all[p]
	if found != nil {
		h.order.MoveToFront(found.turn)
		h.last = found
	}
	return found
}

// add adds a handle; if there are too many, it retires the least recently used one.
func (h *handles) add(p place, ah *verbs.AH) {
	for len(h.all) >= h.limit {
		h.retire(h.order.Back().Value.(*handle))
		h.evicted++
	}
	one := &handle{place: p, ah: ah}
	one.turn = h.order.PushFront(one)
	h.all[p] = one
}

func (h *handles) retire(one *handle) {
	delete(h.all, one.place)
	h.order.Remove(one.turn)
	h.retired = append(h.retired, one)
	if h.last == one {
		h.last = nil
	}
}

// retireAll retires all handles, since the GID table has changed.
func (h *handles) retireAll() {
	for _, one := range h.all {
		h.retire(one)
	}
	h.table++
}

// takeIdle gives the retired handles that no outstanding message names, to be closed.
func (h *handles) takeIdle(reaped uint64) (idle []*verbs.AH) {
	kept := h.retired[:0]
	for _, one := range h.retired {
		if one.last <= reaped {
			idle = append(idle, one.ah)
		} else {
			kept = append(kept, one)
		}
	}
	clear(h.retired[len(kept):])
	h.retired = kept
	return idle
}

// takeHandles gives all handles, to be closed.
func (s *sender) takeHandles() []*verbs.AH {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles.retireAll()
	return s.handles.takeIdle(math.MaxUint64)
}

// keyOf is the place that a message goes to.
func (e *Endpoint) keyOf(m *Message, to *Addr) place {
	p := place{dest: to.GID}
	if m.answers(e) {
		if own := m.grh().DGID(); !own.IsMulticast() {
			p.source = own
		}
	}
	return p
}

// makeHandle resolves a message's destination. Several goroutines may do so for the same one at once;
// the first handle is kept.
func (e *Endpoint) makeHandle(ctx context.Context, m *Message) error {
	to := e.destination(m)
	if to.isNoGroup() {
		return &toError{*to, to.noGroup()}
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.making.Done()
	s := &e.send
	s.mu.Lock()
	table, idle := s.handles.table, s.handles.takeIdle(s.reaped)
	s.mu.Unlock()
	if err := closeAll(idle); err != nil {
		return err
	}
	ah, err := e.resolve(ctx, m, to)
	if err != nil {
		return err
	}
	if !s.keep(e.keyOf(m, to), ah, table) {
		return ah.Close()
	}
	return nil
}

// keep adds a handle, unless there is one already or the GID table has changed since it was made.
func (s *sender) keep(p place, ah *verbs.AH, table uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handles.table != table || s.handles.all[p] != nil {
		return false
	}
	s.handles.add(p, ah)
	return true
}

// resolve makes an address handle. For a reply it does not wait; else it waits until ctx is done or
// the endpoint is closed.
func (e *Endpoint) resolve(ctx context.Context, m *Message, to *Addr) (*verbs.AH, error) {
	if to.GID.IsZero() {
		return nil, fmt.Errorf("send: %w: the message has no To, and the endpoint no peer", verbs.ErrInvalid)
	}
	if m.answers(e) {
		return e.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, m.grh(), port)
	}
	source, err := e.chooseSource(to.GID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life, cancel)()
	ah, err := e.pd.CreateAH(ctx, &verbs.AHAttr{Port: port, GRH: verbs.GlobalRoute{
		DGID: to.GID, SGIDIndex: source, FlowLabel: e.options.FlowLabel, TrafficClass: e.options.TrafficClass,
	}})
	if err != nil {
		return nil, &toError{*to, cmp.Or(errors.Unwrap(err), err)} // package verbs names the GID again
	}
	return ah, nil
}

func closeAll(handles []*verbs.AH) (err error) {
	for _, ah := range handles {
		err = errors.Join(err, freed(ah.Close()))
	}
	return err
}

// Resolve resolves a destination now, so that the first message to it does not wait for that. It
// waits, and fails, as Send does.
func (e *Endpoint) Resolve(ctx context.Context, to Addr) error {
	if e == nil {
		return fmt.Errorf("resolve: %w", errNil)
	}
	return e.explain(e.makeHandle(ctx, &Message{To: to}))
}
