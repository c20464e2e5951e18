// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"cmp"
	"slices"
	"sync"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
)

// Service is a service as programs inspect it: its clients and their sessions.
type Service struct {
	find     func(p *peer.Peer, name string) (Device, error)
	users    *peer.Users
	monitors monitors

	mu      sync.Mutex
	clients map[*Client]struct{}
	last    uint64 // number of a client
	slots   slots
}

// Device is a device of the service, as a client sees it.
type Device struct {
	Name   string
	Source any // the device itself
	// Card returns what describes the device: the device itself, or the card of the client's network namespace. The error
	// is verbs.ErrDeviceFatal if there is no card now.
	Card func() (any, error)
}

// NewService returns a service without clients. find returns the device of a name if the peer may see it.
func NewService(users *peer.Users, find func(p *peer.Peer, name string) (Device, error)) *Service {
	return &Service{find: find, users: users, monitors: newMonitors(), clients: map[*Client]struct{}{}}
}

// Add adds a client.
func (s *Service) Add(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	c.number, c.slot = s.last, s.slots.acquire()
	s.clients[c] = struct{}{}
}

// Remove removes a client that Add has added.
func (s *Service) Remove(c *Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.slots.release(c.slot)
}

// Clients returns the number of clients.
func (s *Service) Clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clients)
}

// seenBy returns the clients that a client may see, from a number on, in the order of their numbers.
func (s *Service) seenBy(viewer *Client, from uint64) (list []*Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.clients {
		if c.number >= from && viewer.peer.Sees(c.peer) {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b *Client) int { return cmp.Compare(a.number, b.number) })
	return list
}

// reportNoticed makes all sessions report what the card has marked, to their programs and to monitors.
func (s *Service) reportNoticed() {
	s.mu.Lock()
	var sessions []*hca.Session
	for c := range s.clients {
		if session, _ := c.open(); session != nil {
			sessions = append(sessions, session)
		}
	}
	s.mu.Unlock()
	for _, session := range sessions {
		session.ReportNoticed()
	}
}

// HasMonitors reports whether programs wait for events.
func (s *Service) HasMonitors() bool { return s.monitors.any.Load() }

// NoteDeviceEvent delivers an event of a device to monitors.
func (s *Service) NoteDeviceEvent(device string, event verbs.EventType) {
	s.monitors.put(proto.Event{Kind: proto.DeviceEvent, Device: device, Type: event}, "")
}

// NoteDeviceOpened reports to monitors that a device has a card.
func (s *Service) NoteDeviceOpened(device string) {
	s.monitors.put(proto.Event{Kind: proto.DeviceOpened, Device: device}, "")
}

// NoteMarked reports that the card has marked an object of some session. It does not wait.
func (s *Service) NoteMarked() { s.monitors.noteMarked() }

// slots are small numbers, from 1 on, of the clients that exist. A released number is used again.
type slots struct {
	last uint32
	free []uint32
}

func (s *slots) acquire() uint32 {
	if n := len(s.free); n > 0 {
		slot := s.free[n-1]
		s.free = s.free[:n-1]
		return slot
	}
	s.last++
	return s.last
}

func (s *slots) release(slot uint32) { s.free = append(s.free, slot) }
