//go:build linux

package hca

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/region"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/internal/capability"
	"github.com/roced/roced/internal/futex"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/quota"
)

// Session is one program's use of a card: objects with handles, a doorbell, events, limits and
// privileges of its own. It is a provider.Provider. Sessions do not affect each other; closing one
// frees only its own objects.
type Session struct {
	card           *Card
	config         SessionConfig
	cm             *ids.Session
	doorbell       *ring.Doorbell
	doorbellMemory []byte
	entry          *datapath.Session // in the engine's tables
	events         events
	internal       bool          // the card's own, for its manager
	payer          *quota.Quota  // pays for next hops
	claimed        atomic.Bool   // by a Context
	memory         atomic.Uint64 // bytes allocated

	life life // its work is commands that work or wait without card.mu; it fails before its card by Faulted

	// Under card.mu.
	pds           handles.Table[pd]
	channels      handles.Table[compChannel]
	cqs           handles.Table[cq]
	keys          handles.Table[keyed]
	dms           handles.Table[dm]
	counters      handles.Table[counters]
	srqs          handles.Table[srq]
	xrcds         handles.Table[xrcd]
	qps           handles.Table[qp]
	ahs           handles.Table[ah]
	joins         handles.Table[joined]
	qpsByDoorbell map[uint32]*qp
	lastPD        region.PD
	attached      int // attachments of queue pairs to groups
}

// maxSessions is how many sessions a card has at most.
const maxSessions = 4096

// NewSession makes a further session on the card. It ends with its Close or the card's. Errors:
// ErrLimit, ErrClosed, ErrDeviceFatal, and ErrInvalid for a limit below 0.
func (card *Card) NewSession(config SessionConfig) (*Session, error) {
	return card.newSession(config, false)
}

func (card *Card) newSession(config SessionConfig, internal bool) (*Session, error) {
	if err := config.setDefaults(); err != nil {
		return nil, fmt.Errorf("session on %s: %w", card.Name(), err)
	}
	s := &Session{
		card: card, config: config, internal: internal, payer: config.Quota, life: newLife(), qpsByDoorbell: map[uint32]*qp{},
		pds: handles.NewTable[pd]("PD", quota.PDs, config.Limits, config.Quota), keys: handles.NewTable[keyed]("MR", quota.MRs, config.Limits, config.Quota), dms: handles.NewTable[dm]("DM", quota.MRs, config.Limits, config.Quota), counters: handles.NewTable[counters]("counters object", quota.MRs, config.Limits, config.Quota), ahs: handles.NewTable[ah]("AH", quota.AHs, config.Limits, config.Quota),
		channels: handles.NewTable[compChannel]("completion channel", quota.CompChannels, config.Limits, config.Quota), cqs: handles.NewTable[cq]("CQ", quota.CQs, config.Limits, config.Quota),
		qps: handles.NewTable[qp]("QP", quota.QPs, config.Limits, config.Quota), srqs: handles.NewTable[srq]("SRQ", quota.SRQs, config.Limits, config.Quota), xrcds: handles.NewTable[xrcd]("XRC domain", quota.XRCDs, config.Limits, config.Quota), joins: handles.NewTable[joined]("membership", quota.Memberships, config.Limits, config.Quota),
	}
	if internal {
		s.payer = quota.New("connection management", quota.Limits{}, nil)
	}
	s.channels.Gone = handles.ErrChannelGone
	s.cm = card.manager.NewSession(ids.SessionConfig{Program: cmProgram{s}, Limits: config.Limits, Quota: config.Quota})
	s.events.init(s)
	var err error
	if s.doorbellMemory, err = s.alloc(ring.DoorbellSize); err != nil {
		return nil, fmt.Errorf("doorbell of a session on %s: %w", card.Name(), err)
	}
	s.doorbell = ring.NewDoorbell(s.doorbellMemory)
	s.entry = datapath.NewSession(s.doorbell)
	if err := card.addSession(s); err != nil {
		s.release(s.doorbellMemory)
		return nil, fmt.Errorf("session on %s: %w", card.Name(), err)
	}
	if err := s.hearCalls(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// hearCalls has the worker read the descriptor of calls, if there is one.
func (s *Session) hearCalls() error {
	if s.config.Calls == 0 {
		return nil
	}
	if err := s.entry.Engine().HearCalls(s.entry, s.config.Calls); err != nil {
		return fmt.Errorf("%w: hear the calls of a session on %s: %w", verbs.ErrHost, s.card.Name(), err)
	}
	return nil
}

func (card *Card) addSession(s *Session) error {
	card.mu.Lock()
	defer card.mu.Unlock()
	if err := card.life.err(); err != nil {
		return err
	}
	if len(card.sessions) == maxSessions && !s.internal {
		return fmt.Errorf("%w: the card has %d sessions, which is the most; close some", verbs.ErrLimit, maxSessions)
	}
	if err := card.admitSession(s.config.Quota); err != nil {
		return err
	}
	if !s.internal {
		card.sessions = append(card.sessions, s)
		card.engine.SetUser(userOf(card.sessions)) // before it is served
	}
	card.engine.Serve(s.entry)
	return nil
}

// userOf is who all sessions are of that say so; nil if they are of several. A service's card has one session of the
// service's own, which has no queue pairs.
func userOf(sessions []*Session) (of any) {
	for _, s := range sessions {
		user := s.config.Sharer
		if of != nil && user != nil && user != of {
			return nil
		}
		if user != nil {
			of = user
		}
	}
	return of
}

// admitSession says whether a user may have another session. The caller holds card.mu.
func (card *Card) admitSession(of *quota.Quota) error {
	if of == nil {
		return nil
	}
	own := 0
	for _, other := range card.sessions {
		if other.config.Quota == of {
			own++
		}
	}
	return of.AdmitBeside(uint64(own), quota.Shared{Noun: "sessions of the card", Used: uint64(len(card.sessions)), Most: maxSessions})
}

// Close ends the session and frees all that it has: objects, attachments to groups, memberships.
// Posted requests are sent first, as with Card.Close. From then on commands return verbs.ErrClosed.
// Closing again waits for the first Close, and does nothing.
func (s *Session) Close() error {
	s.card.mu.Lock()
	first := s.end()
	if first {
		s.card.life.work.Add(1)
	}
	s.card.mu.Unlock()
	if !first {
		<-s.life.over
		return nil
	}
	defer s.card.life.work.Done()
	s.cm.Shut()
	s.cm.Wait()
	s.life.work.Wait()
	s.entry.Engine().Settle(s.entry, closeTimeout)
	return s.free()
}

// end refuses further commands; false if it was called before. The caller holds card.mu.
func (s *Session) end() (first bool) {
	if first = s.life.stop(); first {
		s.wakeWaiters()
	}
	return first
}

// wakeWaiters wakes all that wait for something that cannot come any more. The caller holds card.mu.
func (s *Session) wakeWaiters() {
	if s.life.release() {
		for _, c := range s.channels.All() {
			c.shut(s)
		}
		s.entry.Engine().WakeLeader()
		futex.Wake(s.doorbell.End())
	}
}

// Done implements provider.Provider.
func (s *Session) Done() <-chan struct{} { return s.life.done }

// Err implements provider.Provider.
func (s *Session) Err() error {
	if err := s.life.err(); err != nil {
		return err
	}
	return s.card.life.err()
}

// enter takes the card's lock for a command, unless the session has ended.
func (s *Session) enter() error {
	s.card.mu.Lock()
	err := s.Err()
	if err != nil {
		s.card.mu.Unlock()
	}
	return err
}

// begin is for a command that works without the card's lock. The session is not freed before the
// command calls life.work.Done.
func (s *Session) begin() error {
	if err := s.enter(); err != nil {
		return err
	}
	s.life.work.Add(1)
	s.card.mu.Unlock()
	return nil
}

// enterToFree is enter for a command that frees something, which is also allowed on a card that has
// failed.
func (s *Session) enterToFree() error {
	s.card.mu.Lock()
	if s.life.stopped() {
		s.card.mu.Unlock()
		return verbs.ErrClosed
	}
	return nil
}

// Claim implements provider.Provider.
func (s *Session) Claim() error {
	if s.claimed.Swap(true) {
		return fmt.Errorf("%w: this session on %s has a Context already; Card.NewSession makes another session", verbs.ErrBusy, s.card.Name())
	}
	return nil
}

// Doorbell implements provider.Provider.
func (s *Session) Doorbell() *ring.Doorbell { return s.doorbell }

// DoorbellMemory is the doorbell's, from SessionConfig.Memory.
func (s *Session) DoorbellMemory() []byte { return s.doorbellMemory }

// Wake implements provider.Provider. If inline progress is on, the caller's thread does the work.
func (s *Session) Wake() {
	if s.card.inline {
		s.entry.Engine().Kick(s.entry)
	} else {
		s.entry.Engine().Wake(s.entry)
	}
}

// Progress implements provider.Progressor.
func (s *Session) Progress() bool { return s.card.inline && s.entry.Engine().Progress() }

// BeginWait implements provider.Progressor.
func (s *Session) BeginWait() { s.entry.Engine().BeginWait() }

// EndWait implements provider.Progressor.
func (s *Session) EndWait() { s.entry.Engine().EndWait() }

// NoteReady implements provider.Progressor.
func (s *Session) NoteReady() {
	if s.card.inline {
		s.entry.Engine().NoteReady()
	}
}

// Lead implements provider.Leader.
func (s *Session) Lead(ctx context.Context, events, closed <-chan struct{}) (over bool) {
	return s.card.inline && s.entry.Engine().Lead(datapath.Waiter{Context: ctx, Events: events, Closed: closed, Done: s.life.done})
}

// WakeLeader implements provider.Leader.
func (s *Session) WakeLeader() { s.entry.Engine().WakeLeader() }

// mayPrivileged reports whether the program may set a Q_Key with the high bit.
func (s *Session) mayPrivileged() bool {
	if s.config.Privileged != nil {
		return s.config.Privileged()
	}
	return capability.NetRaw.Held()
}

// privilege names what mayPrivileged asks for.
func (s *Session) privilege() string {
	if s.config.Privileged != nil {
		return "a privilege that the session was not given: over the service root, or its privileged group"
	}
	return "CAP_NET_RAW"
}

// mayBindService reports whether the program may bind a connection id to a port that needs a privilege.
func (s *Session) mayBindService() bool {
	switch {
	case s.config.BindService != nil:
		return s.config.BindService()
	case s.config.Privileged != nil:
		return s.config.Privileged()
	}
	return capability.NetBindService.Held()
}

// bindPrivilege names what mayBindService asks for.
func (s *Session) bindPrivilege() string {
	if s.config.BindService != nil || s.config.Privileged != nil {
		return "a privilege that the session was not given: over the service root"
	}
	return capability.NetBindService.String()
}

// Payer returns the quota that pays for the next hops of the session; nil for a program in this process. It implements
// paths.User.
func (s *Session) Payer() *quota.Quota { return s.payer }
