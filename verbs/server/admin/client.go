// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/provider"
	"github.com/roced/roced/verbs/server/peer"
)

// Client is a connection of the service, as programs inspect it.
type Client struct {
	peer    *peer.Peer
	since   time.Time
	number  uint64 // counts clients, from 1 on
	slot    uint32 // of Service.slots
	command string // the process's name when it opened its device

	mu      sync.Mutex
	session *hca.Session // nil until it is open
	device  string
}

// NewClient returns a client that has connected at a time.
func NewClient(p *peer.Peer, since time.Time) *Client { return &Client{peer: p, since: since} }

// Open adds the session of a client, and reports to monitors that the client has opened a device.
func (s *Service) Open(c *Client, session *hca.Session, device string) {
	c.mu.Lock()
	c.session, c.device = session, device
	c.mu.Unlock()
	s.noteClient(c, proto.ClientOpened)
}

// Close reports to monitors that the session of a client, if it has one, is closed.
func (s *Service) Close(c *Client) {
	if session, _ := c.open(); session != nil {
		s.noteClient(c, proto.ClientClosed)
	}
}

func (s *Service) noteClient(c *Client, kind proto.EventKind) {
	if s.HasMonitors() {
		_, device := c.open()
		s.monitors.put(c.event(kind, device), c.peer.Container)
	}
}

// open returns the client's session and the device's name; nil before it has opened one.
func (c *Client) open() (*hca.Session, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.device
}

// event returns an event of the client.
func (c *Client) event(kind proto.EventKind, device string) proto.Event {
	p := c.peer
	return proto.Event{Kind: kind, Client: c.number, PID: uint32(p.PID), UID: p.UID, Device: device, Command: c.command}
}

// Observe returns the function by which the session that the client is about to open reports changes of its objects.
func (s *Service) Observe(c *Client, device string) func(hca.ObjectEvent) {
	c.command = commandOf(c.peer.PID)
	return func(o hca.ObjectEvent) {
		if !s.HasMonitors() {
			return
		}
		kind := proto.ObjectEvent
		if o.Moved {
			kind = proto.QPFailed
		}
		e := c.event(kind, device)
		e.Type, e.State, e.Number = o.Type, o.State, o.Number
		if o.Kind != hca.ObjectQP {
			e.Number = uint32(handles.Distinct(c.slot, provider.Handle(o.Number)))
		}
		for number, is := range objectKinds {
			if is == o.Kind {
				e.Object = number
			}
		}
		s.monitors.put(e, c.peer.Container)
	}
}

// info describes the client.
func (c *Client) info() proto.ClientInfo {
	p := c.peer
	session, device := c.open()
	info := proto.ClientInfo{
		Number: c.number, PID: uint32(p.PID), UID: p.UID, Owner: p.Owner, Command: commandOf(p.PID), Device: device, Since: uint64(c.since.UnixNano()),
	}
	if session == nil {
		return info
	}
	u := session.Used()
	info.PDs, info.MRs, info.CQs, info.QPs, info.SRQs = uint32(u.PDs), uint32(u.MRs), uint32(u.CQs), uint32(u.QPs), uint32(u.SRQs)
	info.AHs, info.Channels, info.Members, info.Attached = uint32(u.AHs), uint32(u.CompChannels), uint32(u.Memberships), uint32(u.Attachments)
	info.MemorySize = u.Memory
	return info
}

// distinct returns the object with numbers that are unique among all clients, in place of the session's handles.
func (c *Client) distinct(o proto.Object) proto.Object {
	for _, h := range []*provider.Handle{&o.Handle, &o.PD, &o.SRQ, &o.SendCQ, &o.RecvCQ} {
		*h = handles.Distinct(c.slot, *h)
	}
	return o
}

// commandOf returns the name of a process, empty if the service cannot see it.
func commandOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSuffix(string(text), "\n"), "?")
}
