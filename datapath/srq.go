package datapath

import (
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/datapath/wire"
)

// SRQ is the card's end of a shared receive queue. Any number of queue pairs take receives from it.
//
// When it is resized, a new queue is added behind the one that is in use. The program posts to the
// new one from some moment on, and never to the old one again. The card takes what is left in the
// old one first. Nothing is copied.
type SRQ struct {
	// Queue is the one in use: QP.Recv of all queue pairs. When another one comes into use, that is
	// copied into it, so that the pointer stays.
	Queue   *ring.RecvConsumer
	Session *Session
	PD      region.PD
	// Of one of type XRC: its number, and where receives that an XRC target has taken complete, with this token.
	Number          wire.SRQN
	CQ              *CQ
	CompletionToken uint32
	// NoteLimit is called when the number of receives has dropped below the limit; see SetLimit. It
	// runs under the lease.
	NoteLimit func()

	newer   []*ring.RecvConsumer // the queues after Queue
	shifted int                  // queues that Queue was since the last Trim, before this one
	limit   uint32               // 0: none
	dirty   bool                 // it is in the engine's takenFrom
}

// took is called when a queue pair has taken a receive.
func (cs *completions) took(s *SRQ) {
	if !s.dirty {
		s.dirty = true
		cs.takenFrom = append(cs.takenFrom, s)
	}
	if s.limit != 0 {
		cs.checkLimit(s)
	}
}

// takeFrom takes the next receive of an SRQ; false if there is none.
func (cs *completions) takeFrom(s *SRQ, r *ring.Recv) bool {
	if !s.Queue.Peek(r) && !s.peekNewer(r) {
		return false
	}
	s.Queue.Advance()
	cs.took(s)
	return true
}

// checkLimit disarms a limit that is reached. Its event comes at the end of the round.
func (cs *completions) checkLimit(s *SRQ) {
	if s.Waiting() < s.limit {
		s.limit = 0
		cs.reached = append(cs.reached, s)
	}
}

// Waiting is the number of receives that have been posted and not been taken. It runs in Do.
func (s *SRQ) Waiting() (n uint32) {
	n = s.Queue.Waiting()
	for _, q := range s.newer {
		n += q.Waiting()
	}
	return n
}

// peekNewer is Peek for when Queue has nothing; false for a nil SRQ.
func (s *SRQ) peekNewer(r *ring.Recv) bool {
	for s != nil && len(s.newer) > 0 {
		if !s.shift() {
			return false
		}
		if s.Queue.Peek(r) {
			return true
		}
	}
	return false
}

// shift brings the next queue into use, if the program posts to it already and Queue is empty. It
// looks at the next one first: once there is something in it, nothing comes into Queue any more.
func (s *SRQ) shift() bool {
	later := uint32(0)
	for _, q := range s.newer {
		later += q.Waiting()
	}
	if later == 0 || s.Queue.Waiting() > 0 {
		return false
	}
	s.use(s.newer[0])
	s.newer = s.newer[1:]
	s.shifted++
	return true
}

// use makes another queue the one in use.
func (s *SRQ) use(q *ring.RecvConsumer) {
	s.Queue.Publish()
	*s.Queue = *q
}

// publishSRQs gives the slots of the receives that the round has taken back to the programs.
func (cs *completions) publishSRQs() {
	for len(cs.takenFrom) > 0 {
		s := pop(&cs.takenFrom)
		cs.engine.round.hand = s.Session
		s.Queue.Publish()
		s.dirty = false
	}
}

// noteSRQs reports limits that were reached, and queue pairs that take no more receives.
func (cs *completions) noteSRQs() {
	for len(cs.reached) > 0 {
		s := pop(&cs.reached)
		cs.engine.round.hand = s.Session
		s.NoteLimit()
	}
	for len(cs.ended) > 0 {
		qp := pop(&cs.ended)
		cs.engine.round.hand = qp.Session
		qp.NoteLastWQE()
	}
}

// pop takes the last out of a list, before it is looked at: what ends in a fault is not tried again.
func pop[T any](list *[]*T) *T {
	last := len(*list) - 1
	one := (*list)[last]
	(*list)[last] = nil
	*list = (*list)[:last]
	return one
}

// SetLimit arms the SRQ: NoteLimit is called once, as soon as fewer receives than the limit wait,
// which may be now. 0 disarms it. It runs in Do.
func (s *SRQ) SetLimit(limit uint32) {
	s.limit = limit
	if limit != 0 {
		s.Session.engine.completions.checkLimit(s)
	}
}

// Limit is the limit that is armed, 0 if none is. It runs in Do.
func (s *SRQ) Limit() uint32 { return s.limit }

// Resize adds a queue behind those that an SRQ has: the program posts to it from some moment on. It
// runs in Do.
func (s *SRQ) Resize(q *ring.RecvConsumer) { s.newer = append(s.newer, q) }

// Trim forgets the queues that an earlier resize has replaced and that are empty, and gives the
// places that those which are left had among all that there were after the last Trim, the oldest being
// 0. It runs in Do, when the program posts to the last one.
func (s *SRQ) Trim() (left []int) {
	all := append([]*ring.RecvConsumer{s.Queue}, s.newer...)
	var newer []*ring.RecvConsumer
	for place, q := range all {
		if place == len(all)-1 || q.Waiting() > 0 {
			left = append(left, s.shifted+place)
			newer = append(newer, q)
		}
	}
	if s.newer = newer[1:]; newer[0] != s.Queue {
		s.use(newer[0])
	}
	s.shifted = 0
	return left
}

// Domain is an XRC domain: the shared receive queues that peers of its targets may name. They may be of several
// sessions. The targets are of a session that is the domain's own, so that they outlive each of these.
type Domain struct{ srqs map[wire.SRQN]*SRQ }

// NewDomain makes a domain without queues.
func NewDomain() *Domain { return &Domain{map[wire.SRQN]*SRQ{}} }

// AddSRQ lets peers name a queue. It runs in Do.
func (d *Domain) AddSRQ(s *SRQ) { d.srqs[s.Number] = s }

// RemoveSRQ ends that. It runs in Do.
func (d *Domain) RemoveSRQ(s *SRQ) { delete(d.srqs, s.Number) }

// srq is the queue of a number; nil if there is none in the domain, or no domain.
func (d *Domain) srq(number wire.SRQN) *SRQ {
	if d == nil {
		return nil
	}
	return d.srqs[number]
}
