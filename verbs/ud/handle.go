// SPDX-License-Identifier: Apache-2.0

package ud

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/internal/transport"
)

// place is the key of an address handle: its destination and, for replies, its source. The source is
// zero if it is chosen by the destination.
type place struct{ dest, source verbs.GID }

// placeOf returns the place of a message that is sent to an address.
func placeOf(e *Endpoint, m *Message, to *Addr) place {
	p := place{dest: to.GID}
	if m.isReply(e) {
		if own := grhOf(m).DGID(); !own.IsMulticast() {
			p.source = own
		}
	}
	return p
}

// grhOf returns the header that a message came with.
func grhOf(m *Message) verbs.GRH { return verbs.GRH(m.endpoint.receives.Data(m.loan, grhLen)) }

// handle is an address handle in use.
type handle struct {
	place place
	ah    *verbs.AH
	last  uint64        // number of the last message that used it
	turn  *list.Element // in handles.order
}

// handles are the resolved destinations, the most recently used one first. Removed handles wait in retired until no
// outstanding message uses them.
type handles struct {
	mu      sync.Mutex
	all     map[place]*handle
	order   list.List // of *handle
	last    *handle   // the last one found; nil if it was removed
	limit   int
	table   uint64 // number of changes of the GID table
	retired []*handle
	evicted uint64
}

func (h *handles) init(limit int) {
	h.all, h.limit = map[place]*handle{}, limit
}

// find returns the handle of a place, or nil. The caller holds mu.
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

// add adds a handle, unless the place has one already or the GID table has changed since the handle was created. If
// there are too many, it retires the least recently used one.
func (h *handles) add(p place, ah *verbs.AH, table uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.table != table || h.all[p] != nil {
		return false
	}
	for len(h.all) >= h.limit {
		h.retire(h.order.Back().Value.(*handle))
		h.evicted++
	}
	one := &handle{place: p, ah: ah}
	one.turn = h.order.PushFront(one)
	h.all[p] = one
	return true
}

// retire removes a handle. The caller holds mu.
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
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.all {
		h.retire(one)
	}
	h.table++
}

// takeIdle removes the retired handles that no message after completed uses, and returns them with the number of
// changes of the GID table.
func (h *handles) takeIdle(completed uint64) (idle []*verbs.AH, table uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	kept := h.retired[:0]
	for _, one := range h.retired {
		if one.last <= completed {
			idle = append(idle, one.ah)
		} else {
			kept = append(kept, one)
		}
	}
	clear(h.retired[len(kept):])
	h.retired = kept
	return idle, h.table
}

// count returns the number of handles in use, and the number dropped because of MaxHandles.
func (h *handles) count() (all int, evicted uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.all), h.evicted
}

// close closes all handles.
func (h *handles) close() error {
	h.retireAll()
	idle, _ := h.takeIdle(math.MaxUint64)
	return closeAll(idle)
}

func closeAll(handles []*verbs.AH) (err error) {
	for _, ah := range handles {
		err = errors.Join(err, transport.Free(ah))
	}
	return err
}

// resolve creates the handle for a message. Several goroutines may do so for the same destination concurrently; the
// first handle is kept.
func (h *handles) resolve(ctx context.Context, e *Endpoint, m *Message, to Addr) error {
	if to.isNoGroup() {
		return &toError{to, to.noGroup()}
	}
	if err := e.life.Enter(); err != nil {
		return err
	}
	defer e.life.Leave()
	var completed uint64
	e.sends.Do(func(p transport.Progress) { completed = p.Completed })
	idle, table := h.takeIdle(completed)
	if err := closeAll(idle); err != nil {
		return err
	}
	ah, err := createAH(ctx, e, m, to)
	if err != nil {
		return err
	}
	if !h.add(placeOf(e, m, &to), ah, table) {
		return ah.Close()
	}
	return nil
}

// createAH creates an address handle. For a reply it does not wait; otherwise it waits until ctx is done or
// the endpoint is closed.
func createAH(ctx context.Context, e *Endpoint, m *Message, to Addr) (*verbs.AH, error) {
	if to.GID.IsZero() {
		return nil, fmt.Errorf("send: %w: the message has no To, and the endpoint no peer", verbs.ErrInvalid)
	}
	if m.isReply(e) {
		return e.pd.CreateAHFromWC(&verbs.WC{Flags: verbs.WCGRH}, grhOf(m), portNumber)
	}
	source, err := e.port.chooseSource(to.GID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.life.Context, cancel)()
	ah, err := e.pd.CreateAH(ctx, &verbs.AHAttr{Port: portNumber, GRH: verbs.GlobalRoute{
		DGID: to.GID, SGIDIndex: source, FlowLabel: e.options.FlowLabel, TrafficClass: e.options.TrafficClass,
	}})
	if err != nil {
		return nil, &toError{to, cmp.Or(errors.Unwrap(err), err)} // package verbs would repeat the GID
	}
	return ah, nil
}

// Resolve resolves a destination in advance, so that the first message to it does not wait. It waits, and fails, as
// Send does.
func (e *Endpoint) Resolve(ctx context.Context, to Addr) error {
	if e == nil {
		return fmt.Errorf("resolve: %w", errNil)
	}
	m := Message{To: to}
	return e.life.Explain(e.handles.resolve(ctx, e, &m, *e.destination(&m)))
}
