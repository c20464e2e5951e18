package hca

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/capability"
	"github.com/roced/roced/verbs"
)

// Session is what one program has on a card: its objects, by handles of its own, its doorbell,
// events, limits and privileges. It is a verbs.Provider. Sessions know nothing of each other;
// closing one frees exactly its own.
type Session struct {
	card     *Card
	config   SessionConfig
	doorbell *ring.Doorbell
	bell     []byte            // the doorbell's memory
	entry    *datapath.Session // in the engine's tables
	events   events
	claimed  atomic.Bool   // by a Context
	memory   atomic.Uint64 // bytes that were allocated

	stop     chan struct{}  // closed by Close
	done     chan struct{}  // closed by Close, or when the card is gone
	freed    chan struct{}  // closed when nothing is left of it
	commands sync.WaitGroup // that wait for the host, under no lock

	// Under card.mu.
	pds        table[pd]
	cqs        table[cq]
	mrs        table[mr]
	qps        table[qp]
	ahs        table[ah]
	joins      table[joined]
	byDoorbell map[uint32]*qp
	lastPD     datapath.PD
	attached   int // queue pairs to groups
}

// maxSessions is how many a card serves at once.
const maxSessions = 4096

// NewSession makes a session of its own for a part of the program, or a client of it: ErrLimit,
// or ErrClosed or ErrDeviceFatal when the card is gone. It ends with its Close, or the card's.
func (card *Card) NewSession(config SessionConfig) (*Session, error) {
	config.setDefaults()
	s := &Session{
		card: card, config: config, stop: make(chan struct{}), done: make(chan struct{}), freed: make(chan struct{}), byDoorbell: map[uint32]*qp{},
		pds: table[pd]{noun: "PD", limit: config.Limits.PDs}, cqs: table[cq]{noun: "CQ", limit: config.Limits.CQs},
		mrs: table[mr]{noun: "MR", limit: config.Limits.MRs}, qps: table[qp]{noun: "QP", limit: config.Limits.QPs},
		ahs: table[ah]{noun: "AH", limit: config.Limits.AHs}, joins: table[joined]{noun: "membership", limit: config.Limits.Memberships},
	}
	s.events.init()
	var err error
	if s.bell, err = s.alloc(ring.DoorbellSize); err != nil {
		return nil, fmt.Errorf("doorbell of a session on %s: %w", card.name, err)
	}
	s.doorbell = ring.NewDoorbell(s.bell)
	s.entry = datapath.NewSession(s.doorbell)
	if err := card.addSession(s); err != nil {
		s.release(s.bell)
		return nil, fmt.Errorf("session on %s: %w", card.name, err)
	}
	return s, nil
}

func (card *Card) addSession(s *Session) error {
	card.mu.Lock()
	defer card.mu.Unlock()
	if err := card.ended(); err != nil {
		return err
	}
	if len(card.sessions) == maxSessions {
		return fmt.Errorf("%w: a card has %d sessions", verbs.ErrLimit, maxSessions)
	}
	card.sessions = append(card.sessions, s)
	card.engine.Do(func() { card.engine.AddSession(s.entry) })
	return nil
}

// Close ends the session and frees all that it has: objects, attachments to groups, memberships.
// What has been posted is sent first, as Card.Close says. Commands give verbs.ErrClosed from now
// on. Closing again does nothing.
func (s *Session) Close() error {
	s.card.mu.Lock()
	first := s.end()
	if first {
		s.card.closing.Add(1)
	}
	s.card.mu.Unlock()
	if !first {
		<-s.freed
		return nil
	}
	defer s.card.closing.Done()
	s.commands.Wait()
	s.card.engine.Settle(s.entry, closePatience)
	return s.free()
}

// end lets no more commands in; false if that was done before. The caller holds card.mu.
func (s *Session) end() (first bool) {
	if isClosed(s.stop) {
		return false
	}
	close(s.stop)
	s.lose()
	return true
}

// lose wakes those who wait for what will not come any more. The caller holds card.mu.
func (s *Session) lose() {
	if !isClosed(s.done) {
		close(s.done)
	}
}

// free gives back all that the session has; no command runs any more. This is the one place where
// a program's things go when it ends, however it ends.
func (s *Session) free() error {
	card := s.card
	card.mu.Lock()
	queuePairs, handles, joins := s.qps.all(), s.ahs.all(), s.joins.all()
	failed := s.forgetQPs(queuePairs)
	card.engine.Do(func() { card.engine.RemoveSession(s.entry) })
	card.sessions = slices.DeleteFunc(card.sessions, func(other *Session) bool { return other == s })
	card.mu.Unlock()
	for _, a := range handles {
		card.leavePath(a.path)
	}
	for _, m := range joins {
		if m.full {
			failed = errors.Join(failed, card.host.leave(m.group))
		}
	}
	for _, q := range queuePairs {
		s.release(q.memory...)
	}
	for _, c := range s.cqs.all() {
		s.release(c.memory)
	}
	for _, m := range s.mrs.all() {
		s.release(m.own)
	}
	s.release(s.bell)
	close(s.freed)
	return hostError(failed)
}

// Done implements verbs.Provider.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err implements verbs.Provider.
func (s *Session) Err() error {
	if isClosed(s.stop) {
		return verbs.ErrClosed
	}
	return s.card.ended()
}

// enter takes the card's lock for a command, unless the session is over.
func (s *Session) enter() error {
	s.card.mu.Lock()
	err := s.Err()
	if err != nil {
		s.card.mu.Unlock()
	}
	return err
}

// begin is enter for a command that also does something without the card's lock, until
// commands.Done: the session is not freed before.
func (s *Session) begin() error {
	if err := s.enter(); err != nil {
		return err
	}
	s.commands.Add(1)
	s.card.mu.Unlock()
	return nil
}

// enterToFree is enter for a command that gives something back, which a card that has
// failed takes as well.
func (s *Session) enterToFree() error {
	s.card.mu.Lock()
	if isClosed(s.stop) {
		s.card.mu.Unlock()
		return verbs.ErrClosed
	}
	return nil
}

// Claim implements verbs.Provider.
func (s *Session) Claim() error {
	if s.claimed.Swap(true) {
		return fmt.Errorf("%w: %s has a Context in this session; Card.NewSession makes another", verbs.ErrBusy, s.card.name)
	}
	return nil
}

// Doorbell implements verbs.Provider.
func (s *Session) Doorbell() *ring.Doorbell { return s.doorbell }

// Wake implements verbs.Provider. The caller's thread does the work if it may.
func (s *Session) Wake() {
	if s.card.inline {
		s.card.engine.Kick(s.entry)
	} else {
		s.card.engine.Wake(s.entry)
	}
}

// Progress implements verbs.Progressor.
func (s *Session) Progress() bool { return s.card.inline && s.card.engine.Progress() }

// BeginWait implements verbs.Progressor.
func (s *Session) BeginWait() { s.card.engine.BeginWait() }

// EndWait implements verbs.Progressor.
func (s *Session) EndWait() { s.card.engine.EndWait() }

// mayPrivileged reports whether the program may set a Q_Key with the high bit.
func (s *Session) mayPrivileged() bool {
	if s.config.Privileged != nil {
		return s.config.Privileged()
	}
	return capability.NetRaw.Held()
}
