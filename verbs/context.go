package verbs

import (
	"fmt"
	"slices"
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

	eventSources eventSources
}

// Open makes a context on a session, the only one of that session: ErrBusy for another. A card is
// the session of the program that opened it, and gives more (hca.Card.NewSession). Closing the
// context closes the session, and with that of the card itself the card.
func Open(session Provider) (*Context, error) {
	if session == nil {
		return nil, fmt.Errorf("open: %w: no card", ErrInvalid)
	}
	if err := session.Claim(); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	c := &Context{provider: session, doorbell: session.Doorbell(), done: session.Done(), mrs: map[ring.LKey]*MR{}}
	c.eventSources.all = map[uint64]*eventSource{}
	c.progress, _ = session.(Progressor)
	return c, nil
}

// Close closes the session; whatever was made from the context is gone. All methods of it
// and of its objects give ErrClosed from now on, those that wait now among them.
// Closing again does nothing.
//
// What has been posted is sent first; see the session's Close for how long that may take.
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
func (c *Context) QueryPort(port uint8) (PortAttr, error) {
	return c.provider.QueryPort(QueryPortRequest{port})
}

// QueryGID gives a line of a port's GID table, ErrNoGID where it is empty
// (ibv_query_gid). Index 0 is the address to use when nothing speaks for another.
func (c *Context) QueryGID(port uint8, index int) (GIDEntry, error) {
	entries, err := c.GIDs(port)
	if err != nil {
		return GIDEntry{}, err
	}
	at := slices.IndexFunc(entries, func(e GIDEntry) bool { return e.Index == index })
	if at < 0 {
		return GIDEntry{}, fmt.Errorf("%w: the port's GID table has no line %d; see Context.GIDs", ErrNoGID, index)
	}
	return entries[at], nil
}

// GIDs lists the lines in use of a port's GID table (ibv_query_gid_table).
func (c *Context) GIDs(port uint8) ([]GIDEntry, error) {
	grant, err := c.provider.QueryGIDTable(QueryGIDTableRequest{port})
	return grant.Entries, err
}

// QueryPKey gives a port's partition key (ibv_query_pkey); there is the default one.
func (c *Context) QueryPKey(port uint8, index int) (PKey, error) {
	grant, err := c.provider.QueryPKey(QueryPKeyRequest{port, index})
	return grant.PKey, err
}

// qpSlots finds queue pairs by the tokens in completions. A token is a slot
// and the generation of its use, so that completions of a queue pair that was reset or
// destroyed are known as such.
type qpSlots struct {
	table [ring.MaxQueuePairs / slotChunk]atomic.Pointer[[slotChunk]slot]
	free  []uint32
	used  uint32 // slots that have ever been
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
	if s.used == ring.MaxQueuePairs {
		if len(s.free) == 0 {
			return 0, fmt.Errorf("%w: a program can have %d queue pairs; destroy some", ErrLimit, ring.MaxQueuePairs)
		}
		token, s.free = s.free[0], s.free[1:]
		return s.renew(token), nil
	}
	index := s.used
	s.used++
	if chunk := &s.table[index/slotChunk]; chunk.Load() == nil {
		chunk.Store(new([slotChunk]slot))
	}
	return s.renew(index), nil
}

// next is the token of a slot's next life.
func (s *qpSlots) next(token uint32) uint32 {
	fresh := s.at(token).token.Load() + generationUnit
	return fresh&^(ring.MaxQueuePairs-1) | token%ring.MaxQueuePairs
}

// renew starts another life of a slot: older tokens find nothing from now on.
func (s *qpSlots) renew(token uint32) uint32 {
	fresh := s.next(token)
	s.at(token).token.Store(fresh)
	return fresh
}

// release gives a slot back. The caller holds the context's lock.
func (s *qpSlots) release(token uint32) {
	s.at(token).qp.Store(nil)
	s.free = append(s.free, s.renew(token))
}
