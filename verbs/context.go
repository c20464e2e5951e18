package verbs

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
)

// Context is a program's use of a device (ibv_context). Everything that is made
// from it belongs to it. All methods of it and of its objects are safe for
// concurrent use, unless they say otherwise.
type Context struct {
	provider Provider
	progress Progressor // nil where a program cannot run the card
	doorbell *ring.Doorbell
	done     <-chan struct{} // closed when the card is gone

	polled atomic.Pointer[CQ] // in vain, by whoever came last

	mu    sync.Mutex
	slots qpSlots
	mrs   map[ring.LKey]*MR

	elements elements
}

// Open makes a context on a card, the only one of that card: ErrBusy for another. Closing the
// context closes the card.
func Open(card Provider) (*Context, error) {
	if card == nil {
		return nil, fmt.Errorf("open: %w: no card", ErrInvalid)
	}
	if err := card.Claim(); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	c := &Context{provider: card, doorbell: card.Doorbell(), done: card.Done(), mrs: map[ring.LKey]*MR{}}
	c.elements.all = map[uint64]any{}
	c.progress, _ = card.(Progressor)
	return c, nil
}

// Close closes the card; whatever was made from the context is gone. All methods of it
// and of its objects give ErrClosed from now on, those that wait now among them.
// Closing again does nothing.
//
// What has been posted is sent first; see the card's Close for how long that may take.
func (c *Context) Close() error {
	if c == nil {
		return fmt.Errorf("close context: %w", errNil)
	}
	return c.provider.Close()
}

// gone says why the card is gone, nil while it is there.
func (c *Context) gone() error {
	select {
	case <-c.done:
		return c.provider.Err()
	default:
		return nil
	}
}

// QueryDevice tells what the device can do (ibv_query_device).
func (c *Context) QueryDevice() (DeviceAttr, error) { return c.provider.QueryDevice() }

// QueryPort tells the state of a port; there is one, number 1 (ibv_query_port).
func (c *Context) QueryPort(port uint8) (PortAttr, error) { return c.provider.QueryPort(port) }

// QueryGID gives a line of a port's GID table, ErrNoGID where it is empty
// (ibv_query_gid). Index 0 is the address to use when nothing speaks for another.
func (c *Context) QueryGID(port uint8, index int) (GIDEntry, error) {
	return c.provider.QueryGID(port, index)
}

// GIDs lists the lines in use of a port's GID table (ibv_query_gid_table).
func (c *Context) GIDs(port uint8) ([]GIDEntry, error) {
	attr, err := c.QueryPort(port)
	if err != nil {
		return nil, err
	}
	var entries []GIDEntry
	for index := range attr.GIDTableLen {
		if entry, err := c.QueryGID(port, index); err == nil {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// QueryPKey gives a port's partition key (ibv_query_pkey); there is the default one.
func (c *Context) QueryPKey(port uint8, index int) (PKey, error) {
	return c.provider.QueryPKey(port, index)
}

// qpSlots finds queue pairs by the tokens in completions. A token is a slot
// and the generation of its use, so that completions of a queue pair that was reset or
// destroyed are known as such.
type qpSlots struct {
	table [ring.MaxQueuePairs / slotChunk]atomic.Pointer[[slotChunk]slot]
	free  []uint32
	next  uint32
}

const (
	slotChunk      = 256
	generationUnit = ring.MaxQueuePairs
)

type slot struct {
	qp    atomic.Pointer[QP]
	token atomic.Uint32
}

func (s *qpSlots) at(token uint32) *slot {
	index := token % ring.MaxQueuePairs
	chunk := s.table[index/slotChunk].Load()
	if chunk == nil {
		return nil
	}
	return &chunk[index%slotChunk]
}

// find gives the queue pair of a token, nil if that life of it has ended.
func (s *qpSlots) find(token uint32) *QP {
	if slot := s.at(token); slot != nil && slot.token.Load() == token {
		return slot.qp.Load()
	}
	return nil
}

// take finds a free slot, one that was used before as late as can be, and gives its token.
// The caller holds the context's lock.
func (s *qpSlots) take() (token uint32, err error) {
	if s.next == ring.MaxQueuePairs {
		if len(s.free) == 0 {
			return 0, fmt.Errorf("%w: a program can have %d queue pairs; destroy some", ErrLimit, ring.MaxQueuePairs)
		}
		token, s.free = s.free[0], s.free[1:]
		return s.renew(token), nil
	}
	index := s.next
	s.next++
	if chunk := &s.table[index/slotChunk]; chunk.Load() == nil {
		chunk.Store(new([slotChunk]slot))
	}
	return s.renew(index), nil
}

// renew starts another life of a slot: older tokens find nothing from now on.
func (s *qpSlots) renew(token uint32) uint32 {
	slot := s.at(token)
	fresh := slot.token.Load() + generationUnit
	fresh = fresh&^(ring.MaxQueuePairs-1) | token%ring.MaxQueuePairs
	slot.token.Store(fresh)
	return fresh
}

// release gives a slot back. The caller holds the context's lock.
func (s *qpSlots) release(token uint32) {
	s.at(token).qp.Store(nil)
	s.free = append(s.free, s.renew(token))
}
