package hca

import (
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
)

// cq is a completion queue, with the number of queues that complete to it.
type cq struct {
	entry   *datapath.CQ // the engine's part of it
	memory  []byte
	users   int
	eventID uint64      // of the program, for its events
	failed  atomic.Bool // set by the engine; see events
}

// CreateCQ implements verbs.Provider.
func (s *Session) CreateCQ(r verbs.CreateCQRequest) (grant verbs.CreateCQGrant, err error) {
	if r.Entries < 1 || r.Entries > maxCQE {
		return grant, fmt.Errorf("%w: a CQ has 1 to %d entries", verbs.ErrInvalid, maxCQE)
	}
	grant.Geometry = ring.CompletionGeometry(uint32(r.Entries))
	if err := s.begin(); err != nil {
		return verbs.CreateCQGrant{}, err
	}
	defer s.commands.Done()
	if grant.Memory, err = s.alloc(grant.Geometry.Size()); err != nil {
		return verbs.CreateCQGrant{}, err
	}
	if err := s.openCQ(r, &grant); err != nil {
		s.release(grant.Memory)
		return verbs.CreateCQGrant{}, err
	}
	return grant, nil
}

// openCQ makes a queue in the grant's memory, and adds it to the session's table.
func (s *Session) openCQ(r verbs.CreateCQRequest, grant *verbs.CreateCQGrant) error {
	queue, err := ring.NewCompletionProducer(grant.Memory, grant.Geometry)
	if err != nil {
		return fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
	}
	c := &cq{eventID: r.EventID, memory: grant.Memory}
	c.entry = &datapath.CQ{
		Queue: queue, QPs: map[*datapath.QP]struct{}{},
		NoteOverrun: func() { s.events.notice(&c.failed) },
	}
	c.entry.Wake, grant.Events = s.waker(r.EventID)
	if err := s.enter(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	grant.CQ, err = s.cqs.add(c)
	return err
}

// waker gives the function that reports an armed CQ's event to the program: SessionConfig.Wake, or
// one that sends to a channel.
func (s *Session) waker(id uint64) (wake func(), events chan struct{}) {
	if tell := s.config.Wake; tell != nil {
		return func() { tell(id) }, nil
	}
	events = make(chan struct{}, 1)
	return func() {
		select {
		case events <- struct{}{}:
		default: // an event waits already
		}
	}, events
}

// DestroyCQ implements verbs.Provider.
func (s *Session) DestroyCQ(r verbs.DestroyCQRequest) error {
	if err := s.enterToFree(); err != nil {
		return err
	}
	defer s.card.mu.Unlock()
	c, err := s.cqs.get(r.CQ)
	if err != nil {
		return err
	}
	if c.users > 0 {
		return fmt.Errorf("%w: %d queues complete to the CQ; close their QPs first", verbs.ErrBusy, c.users)
	}
	s.cqs.remove(r.CQ)
	s.events.forget(c.eventID)
	s.release(c.memory)
	return nil
}
