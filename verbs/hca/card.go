// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"fmt"
	"slices"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// Card is an RDMA card with one port, on an interface or another network.Host. Programs share it; each has a session on
// it. The Card also has a session for the program that opened it, and passes that program's commands to it, so a Card
// is a provider.Provider. NewSession creates sessions for other programs, or for parts of a program that must not
// affect each other.
type Card struct {
	program // the session's interface for package verbs; Close ends the card
	device

	session  *Session // the session of the program that opened it
	follower follower

	// Under mu.
	sessions []*Session // the programs' sessions
	own      *Session   // the manager's session; nil until it is created
	qps      *handles.Numbers[qp]
	srqs     *handles.Numbers[srq] // of type XRC
	domains  domains
	groups   groupTable
	final    *Statistics // counters at Close; nil before
}

// program is the interface of a session for its program and for inspection.
type program interface {
	provider.Provider
	provider.Progressor
	provider.Leader
	provider.CounterReader
	Objects(kind ObjectKind, from Cursor, most int) (list []Object, next Cursor, more bool, err error)
	IDs(from Cursor, most int) (list []IDInfo, next Cursor, more bool, err error)
	Used() Limits
}

// Name returns the name of the interface, which changes when the interface is renamed.
func (card *Card) Name() string { return card.port.Name() }

// NewSession creates another session on the card. It ends with its Close or the card's. Errors: ErrLimit, ErrClosed,
// ErrDeviceFatal, and ErrInvalid for a negative limit.
func (card *Card) NewSession(config SessionConfig) (*Session, error) {
	return card.newSession(config, false)
}

// newSession creates a session; internal is set for the card's own session, which its manager uses.
func (card *Card) newSession(config SessionConfig, internal bool) (*Session, error) {
	if err := config.setDefaults(); err != nil {
		return nil, fmt.Errorf("session on %s: %w", card.Name(), err)
	}
	s := &Session{card: card, owner: owner{
		device: &card.device, config: config, internal: internal, payer: config.Quota, life: newLife(),
		events: events{card: &card.mu, observe: config.Observe, noticed: config.Noticed},
	}}
	if internal {
		s.payer = quota.New("connection management", quota.Limits{}, nil)
	}
	s.events.init(&s.life, s.Err)
	s.makeTables()
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
	if config.Calls != 0 {
		if err := s.engine().HearCalls(s.entry, config.Calls); err != nil {
			return nil, errors.Join(fmt.Errorf("%w: watch the call descriptor of a session on %s: %w", verbs.ErrHost, card.Name(), err), s.Close())
		}
	}
	return s, nil
}

// report reports an event to the sessions of all programs. The caller holds mu.
func (card *Card) report(event provider.EventReport) {
	for _, s := range card.sessions {
		s.events.put(event)
	}
}

// allSessions returns the sessions of programs and the manager's. The caller holds mu.
func (card *Card) allSessions() []*Session {
	all := slices.Clone(card.sessions)
	if card.own != nil {
		all = append(all, card.own)
	}
	return all
}

// addSession adds a new session to the card and its engine.
func (card *Card) addSession(s *Session) error {
	card.mu.Lock()
	defer card.mu.Unlock()
	if err := card.life.err(); err != nil {
		return err
	}
	if len(card.sessions) == maxSessions && !s.internal {
		return fmt.Errorf("%w: the card has %d sessions, the maximum; close some", verbs.ErrLimit, maxSessions)
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

// admitSession returns an error if a user cannot have another session. The caller holds mu.
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

// userOf returns the user that owns all sessions with a user, or nil if several users do. The card of a service has one
// session of the service's own, without a user and without queue pairs.
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

// Statistics reads all counters, not all at the same instant. It also works on a failed card; for a closed card it
// returns the counters at Close.
func (card *Card) Statistics() (Statistics, error) {
	card.mu.Lock()
	defer card.mu.Unlock()
	if card.final != nil {
		return *card.final, nil
	}
	return card.readStatistics()
}

func (card *Card) readStatistics() (s Statistics, err error) {
	s.Engine, s.TooBig, s.CM = card.engine.Counters(), card.follower.tooBig.packets.Load(), card.manager.Counters()
	s.Faults = s.Engine.Faults + card.faults.count.Load()
	of, err := card.host.Statistics()
	s.Steering, s.Socket, s.Sent, s.UDP = of.Steering, of.Socket, of.Sent, of.UDP
	return s, err
}
