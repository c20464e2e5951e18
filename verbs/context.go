// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// Context is an open device (ibv_context). All objects created from it belong to it. All methods of the context and of
// its objects are safe for concurrent use, unless stated otherwise.
type Context struct {
	provider provider.Provider
	progress provider.Progressor // nil if a program cannot run the card
	leader   provider.Leader     // nil if a waiting program cannot run the card
	doorbell *ring.Doorbell
	done     <-chan struct{} // closed when the card is closed or has failed

	manners      *manners      // nil if programs run the card
	emptyPolls   atomic.Uint32 // polls of any queue that found nothing
	othersPoll   atomic.Bool   // several goroutines poll: others did so during the last yield
	oneProcessor atomic.Bool   // Go runs one goroutine at a time

	slots    qpSlots
	mu       sync.Mutex
	mrs      map[ib.LKey]*MR // by indexOf(key)
	space    dmaSpace
	channels map[*CompChannel]struct{} // the open ones

	eventSources eventSources
	reader       eventReader
	vectors      vectors
}

// Open creates a context on a session. A session has at most one context: ErrBusy for a second. A card used as a
// Provider is the session of the program that opened it; hca.Card.NewSession creates more sessions. Closing the context
// closes the session, and also the card if the context was opened on the card.
func Open(session provider.Provider) (*Context, error) {
	if session == nil {
		return nil, fmt.Errorf("open: %w: no card", ErrInvalid)
	}
	if err := session.Claim(); err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	c := &Context{provider: session, doorbell: session.Doorbell(), done: session.Done(), mrs: map[ib.LKey]*MR{}, channels: map[*CompChannel]struct{}{}}
	c.eventSources.all = map[uint64]*eventSource{}
	c.reader.init()
	c.progress, _ = session.(provider.Progressor)
	c.leader, _ = session.(provider.Leader)
	if spinner, is := session.(provider.Spinner); is {
		c.manners = newManners(spinner)
	}
	c.noteProcessors()
	return c, nil
}

// Close closes the session and everything created from the context. Afterwards all methods of the context and of its
// objects return ErrClosed, including calls that are waiting. Closing again has no effect.
//
// Requests that have been posted are sent first; the session's Close documents how long that may take.
func (c *Context) Close() error {
	if c == nil {
		return fmt.Errorf("close context: %w", errNil)
	}
	err := c.provider.Close()
	c.releaseChannels()
	c.reader.close()
	return err
}

// gone returns ErrClosed or ErrDeviceFatal when the card is closed or has failed, otherwise nil.
func (c *Context) gone() error {
	select {
	case <-c.done:
		return c.provider.Err()
	default:
		return nil
	}
}

// QueryDevice returns the device's capabilities and limits (ibv_query_device).
func (c *Context) QueryDevice() (DeviceAttr, error) {
	if c == nil {
		return DeviceAttr{}, fmt.Errorf("query device: %w", errNil)
	}
	return provider.Do(c.provider, provider.QueryDevice, provider.None{})
}

// QueryPort returns the state of a port (ibv_query_port). The only port is 1.
func (c *Context) QueryPort(port uint8) (PortAttr, error) {
	if c == nil {
		return PortAttr{}, fmt.Errorf("query port: %w", errNil)
	}
	return provider.Do(c.provider, provider.QueryPort, provider.QueryPortRequest{Port: port})
}

// QueryGID returns an entry of a port's GID table (ibv_query_gid, ibv_query_gid_ex). Index 0 is the default. ErrNoGID
// (ENODATA) for an index that is not in use, ErrInvalid for one that the table does not have (PortAttr.GIDTableLen).
func (c *Context) QueryGID(port uint8, index int) (GIDEntry, error) {
	if c == nil {
		return GIDEntry{}, fmt.Errorf("query GID: %w", errNil)
	}
	table, err := provider.Do(c.provider, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: port})
	if err != nil {
		return GIDEntry{}, err
	}
	if index < 0 || index >= table.Length {
		return GIDEntry{}, fmt.Errorf("%w: GID index %d; the port's table has indices 0 to %d", ErrInvalid, index, table.Length-1)
	}
	at := slices.IndexFunc(table.Entries, func(e GIDEntry) bool { return e.Index == index })
	if at < 0 {
		return GIDEntry{}, fmt.Errorf("%w: GID index %d is not in use; Context.QueryGIDTable lists the used ones", ErrNoGID, index)
	}
	return table.Entries[at], nil
}

// QueryGIDTable returns the used entries of a port's GID table, in one command (ibv_query_gid_table).
func (c *Context) QueryGIDTable(port uint8) ([]GIDEntry, error) {
	if c == nil {
		return nil, fmt.Errorf("query GID table: %w", errNil)
	}
	grant, err := provider.Do(c.provider, provider.QueryGIDTable, provider.QueryGIDTableRequest{Port: port})
	return grant.Entries, err
}

// QueryPKey returns a port's partition key (ibv_query_pkey). The table has one entry: the default P_Key.
func (c *Context) QueryPKey(port uint8, index int) (PKey, error) {
	if c == nil {
		return 0, fmt.Errorf("query P_Key: %w", errNil)
	}
	grant, err := provider.Do(c.provider, provider.QueryPKey, provider.QueryPKeyRequest{Port: port, Index: index})
	return grant.PKey, err
}

// qpSlots finds queue pairs by the tokens in completions. A token is the number of a slot and the generation of its
// use. Each reset and each destroy starts a new generation, so older completions find no queue pair.
type qpSlots struct {
	table [ring.MaxQueuePairs / slotChunk]atomic.Pointer[[slotChunk]slot]

	mu   sync.Mutex
	free []uint32
	used uint32 // slots that have been used at least once
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

// find returns the queue pair of a token, or nil if the token's generation has ended. It pairs with createQP and
// release: the queue pair is stored after the token of its generation, and removed before that generation ends.
func (s *qpSlots) find(token uint32) *QP {
	if slot := s.at(token); slot != nil && slot.token.Load() == token {
		return slot.qp.Load()
	}
	return nil
}

// take reserves a free slot and returns its token. Slots that were never used come first, then the slot that has been
// free for longest.
func (s *qpSlots) take() (token uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used == ring.MaxQueuePairs {
		if len(s.free) == 0 {
			return 0, fmt.Errorf("%w: %d queue pairs are open, the limit of a context; close some", ErrLimit, ring.MaxQueuePairs)
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

// next returns the token of a slot's next generation.
func (s *qpSlots) next(token uint32) uint32 {
	fresh := s.at(token).token.Load() + generationUnit
	return fresh&^(ring.MaxQueuePairs-1) | token%ring.MaxQueuePairs
}

// renew starts a slot's next generation; older tokens become invalid.
func (s *qpSlots) renew(token uint32) uint32 {
	fresh := s.next(token)
	s.at(token).token.Store(fresh)
	return fresh
}

// release frees a slot.
func (s *qpSlots) release(token uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(token).qp.Store(nil)
	s.free = append(s.free, s.renew(token))
}
