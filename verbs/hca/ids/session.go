// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"errors"
	"sync"

	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
)

// Session holds the connection ids of one program, and the channels of their events (commands.go). One lock protects
// all of it, and is acquired before the card's.
type Session struct {
	manager *Manager
	program Program
	config  SessionConfig
	work    sync.WaitGroup // commands and their operations, which work or wait without mu

	mu       sync.Mutex
	channels channels
	ids      handles.Table[ID]
}

// NewSession creates a session without ids.
func (m *Manager) NewSession(c SessionConfig) *Session {
	if c.Block == nil {
		c.Block = func(call func()) { go call() }
	}
	s := &Session{
		manager: m, program: c.Program, config: c,
		ids: handles.NewTable[ID]("id", quota.IDs, c.Limits, c.Quota),
	}
	s.channels = channels{handles.NewTable[Channel]("event channel", quota.EventChannels, c.Limits, c.Quota), s}
	s.channels.Gone = handles.ErrChannelGone
	return s
}

// enter locks the session for a command, unless it has ended.
func (s *Session) enter() error {
	s.mu.Lock()
	err := s.program.Err()
	if err != nil {
		s.mu.Unlock()
	}
	return err
}

// enterToFree is enter for a command that frees an object, which is also allowed on a card that has failed.
func (s *Session) enterToFree() error {
	s.mu.Lock()
	if err := s.program.Err(); errors.Is(err, verbs.ErrClosed) {
		s.mu.Unlock()
		return err
	}
	return nil
}

// begin admits a command that works without the lock, until work.Done.
func (s *Session) begin() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.work.Add(1)
	return nil
}

// Quit ends the use of the connection manager for all ids, so that their peers are notified.
func (s *Session) Quit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.ids.All() {
		i.leaveCM()
	}
}

// Shut closes the channels: programs read the end of the stream. The session has ended.
func (s *Session) Shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.channels.All() {
		c.shut()
	}
}

// Wait waits for the operations in progress. The session has ended, so no new ones start.
func (s *Session) Wait() {
	s.mu.Lock()
	begun := &s.work // also by a command that came before
	s.mu.Unlock()
	begun.Wait()
}

// End ends the operations of all ids. A panic with one id does not prevent the others.
func (s *Session) End() error {
	return eachOf(s, func(i *ID) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.endID(i)
	})
}

// Free frees the resources of the ids, except their memberships, which belong to the program, and returns their share
// of the quota.
func (s *Session) Free() error {
	failed := eachOf(s, (*ID).free)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.Close()
	s.channels.Close()
	return failed
}

// eachOf calls a function for each id of a session. A panic with one id does not prevent the others.
func eachOf(s *Session, do func(*ID)) (failed error) {
	s.mu.Lock()
	all := s.ids.All()
	s.mu.Unlock()
	for _, i := range all {
		failed = errors.Join(failed, fault.Call(func() error { do(i); return nil }))
	}
	return failed
}

// Break makes every operation on an id of the session panic: for tests of fault containment.
func (s *Session) Break() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.ids.All() {
		i.channel = nil
	}
}

// Used returns the numbers of ids and channels.
func (s *Session) Used() (ids, channels int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ids.Len(), s.channels.Len()
}

// Waiting returns the number of queued events.
func (s *Session) Waiting() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.channels.All() {
		n += c.waiting.Len()
	}
	return n
}

// Info describes a connection id, for inspection.
type Info struct {
	Handle        provider.Handle
	PortSpace     wire.PortSpace
	Type          verbs.QPType
	State         string         // name in rdma(8)
	Local, Remote netip.AddrPort // zero if unset
	Events        uint32         // queued events
	Groups        uint32         // joined groups
}

// stateNames has the names that rdma(8) uses.
var stateNames = [...]string{
	idIdle: "IDLE", idBound: "ADDR_BOUND", idResolving: "ADDR_QUERY", idAddrResolved: "ADDR_RESOLVED",
	idRouteResolved: "ROUTE_RESOLVED", idConnecting: "CONNECT", idListening: "LISTEN", idDestroyed: "DESTROYING",
}

// List returns at most most ids, from a place on; if more is true, the list continues at next.
func (s *Session) List(from uint32, most int) (list []Info, next uint32, more bool, err error) {
	if err := s.enter(); err != nil {
		return nil, from, false, err
	}
	defer s.mu.Unlock()
	for handle, i := range s.ids.From(from) {
		if len(list) == most {
			return list, handles.Place(handle), true, nil
		}
		list = append(list, Info{
			Handle: handle, PortSpace: i.space, Type: i.kind, State: stateNames[i.state], Local: i.source, Remote: i.dest,
			Events: uint32(i.events.Len()), Groups: uint32(len(i.joins)),
		})
	}
	return list, from, false, nil
}
