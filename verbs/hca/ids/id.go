// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"container/list"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/ib"
	"github.com/roced/roced/verbs/provider"
)

// ID is a connection id (rdma_cm_id). Its session's lock protects all fields except work.
type ID struct {
	session *Session
	handle  provider.Handle
	space   wire.PortSpace
	kind    verbs.QPType
	channel *Channel
	events  list.List // of *idEvent that the program has not read, in order
	asked   int       // number of request events among them: as many as wait at the listener
	state   idState

	reuse, afonly bool
	afonlySet     bool // by the program; otherwise bind chooses
	tos           uint8
	ackTimeout    uint8     // encoded; of a reliable connection
	ackSet        bool      // by the program; otherwise it is the path's
	qkey          wire.QKey // of the id's queue pair and its groups

	binding      *binding // nil without a port
	source, dest netip.AddrPort
	ends         paths.Ends    // of messages to dest; zero until it is resolved
	path         *paths.Path   // with these ends; nil if dest was not resolved here
	given        *verbs.AHAttr // the path set by the program; nil for the host's
	joins        []*idJoin

	usesCM     bool           // the connection manager has one of these for the id
	listener   *cm.Listener   // of a listening id
	inquiry    *cm.Inquiry    // of an id that requests a queue pair number
	request    *cm.Request    // the unanswered request that the id represents
	connection *cm.Connection // of an id that has requested a connection, or represents such a request

	work   sync.WaitGroup  // operations without the lock
	life   context.Context // context of work; ends with the id
	cancel func()
}

// idState is the state of an id. An operation that is not allowed in a state returns EINVAL.
//
//	idle ── bind ──► bound ── resolve address ──► resolving ──► address resolved
//	                   │                                              │ resolve route
//	                   └── listen ──► listening      connecting ◄── route resolved
type idState int

const (
	idIdle idState = iota
	idBound
	idResolving
	idAddrResolved
	idRouteResolved
	idConnecting // a request was sent or received
	idListening
	idDestroyed
)

func (s idState) String() string {
	return [...]string{
		"not bound", "bound", "resolving its address", "resolved to an address", "resolved to a route",
		"connecting", "listening", "destroyed",
	}[s]
}

// connects reports whether the id's queue pair has a single peer.
func (i *ID) connects() bool { return i.kind != verbs.QPTypeUD }

// onDevice reports whether the id is bound to the card: to one of its addresses.
func (i *ID) onDevice() bool { return i.source.IsValid() && !i.source.Addr().IsUnspecified() }

// in returns an error unless the id is in one of the states.
func (i *ID) in(what string, states ...idState) error {
	for _, s := range states {
		if i.state == s {
			return nil
		}
	}
	var allowed []string
	for _, s := range states {
		allowed = append(allowed, s.String())
	}
	return fmt.Errorf("%w: %s an id that is %v; it has to be %s", verbs.ErrInvalid, what, i.state, strings.Join(allowed, ", or "))
}

// CreateID carries out provider.CreateID.
func (s *Session) CreateID(r provider.CreateIDRequest) (grant provider.CreateIDGrant, err error) {
	kind, err := checkSpace(r.PortSpace, r.QPType)
	if err != nil {
		return grant, err
	}
	if err := s.enter(); err != nil {
		return grant, err
	}
	defer s.mu.Unlock()
	c, err := s.channels.Get(r.Channel)
	if err != nil {
		return grant, err
	}
	i, err := s.newID(c, r.PortSpace, kind)
	if err != nil {
		return grant, err
	}
	return provider.CreateIDGrant{ID: i.handle}, nil
}

// newID creates an id.
func (s *Session) newID(c *Channel, space wire.PortSpace, kind verbs.QPType) (_ *ID, err error) {
	i := &ID{session: s, space: space, kind: kind, channel: c, qkey: verbs.UDPQKey}
	if i.handle, err = s.ids.Add(i); err != nil {
		return nil, err
	}
	i.life, i.cancel = context.WithCancel(context.Background())
	c.ids++
	return i, nil
}

// checkSpace returns the type of queue pairs of a port space.
func checkSpace(space wire.PortSpace, asked verbs.QPType) (kind verbs.QPType, err error) {
	switch space {
	case wire.PortSpaceUDP:
		kind = verbs.QPTypeUD
	case wire.PortSpaceTCP:
		if kind = verbs.QPTypeRC; asked == verbs.QPTypeUC || asked == verbs.QPTypeXRCSend || asked == verbs.QPTypeXRCRecv {
			kind = asked
		}
	case wire.PortSpaceIPoIB, wire.PortSpaceIB:
		return 0, fmt.Errorf("%w: port space %v is InfiniBand's; use UDP or TCP", verbs.ErrUnsupported, space)
	default:
		return 0, fmt.Errorf("%w: no port space has the number 0x%04x; use UDP (0x%04x) or TCP", verbs.ErrInvalid, uint16(space), uint16(wire.PortSpaceUDP))
	}
	if asked != 0 && asked != kind {
		return 0, fmt.Errorf("%w: queue pairs of type %v in port space %v, which has %v", verbs.ErrInvalid, asked, space, kind)
	}
	return kind, nil
}

// withID finds an id, and calls a function with it under the session's lock.
func (s *Session) withID(handle provider.Handle, do func(*ID) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	i, err := s.ids.Get(handle)
	if err != nil {
		return err
	}
	return do(i)
}

// MigrateID carries out provider.MigrateID.
func (s *Session) MigrateID(r provider.MigrateIDRequest) error {
	var from *Channel
	err := s.withID(r.ID, func(i *ID) error {
		to, err := s.channels.Get(r.Channel)
		if err != nil {
			return err
		}
		i.channel.ids--
		to.ids++
		for at := i.events.Front(); at != nil; at = at.Next() {
			i.channel.remove(at.Value.(*idEvent))
			to.put(at.Value.(*idEvent))
		}
		i.channel.settle()
		from, i.channel = i.channel, to
		return nil
	})
	if err == nil {
		from.awaitTaken(&s.mu)
	}
	return err
}

// SetIDOption carries out provider.SetIDOption.
func (s *Session) SetIDOption(r provider.SetIDOptionRequest) error {
	return s.withID(r.ID, func(i *ID) error { return i.set(r.Option, r.Value) })
}

func (i *ID) set(option ib.IDOption, value uint32) (err error) {
	switch {
	case option == ib.IDOptionTOS && value <= 0xFF:
		i.tos = uint8(value)
		return nil
	case option == ib.IDOptionReuseAddr && value <= 1:
		if err = i.in("allow the reuse of addresses for", idIdle); err == nil {
			i.reuse = value == 1
		}
		return err
	case option == ib.IDOptionAFOnly && value <= 1:
		if err = i.in("choose the address family of", idIdle, idBound); err == nil {
			i.afonly, i.afonlySet = value == 1, true
		}
		if err == nil && i.binding != nil {
			i.session.manager.Ports.setAFOnly(i.binding, i.afonly)
		}
		return err
	}
	if option == ib.IDOptionAckTimeout && value <= maxAckTimeout {
		if i.kind != verbs.QPTypeRC {
			return fmt.Errorf("%w: an ACK timeout for an id of type %v; only reliable connections have one", verbs.ErrInvalid, i.kind)
		}
		i.ackTimeout, i.ackSet = uint8(value), true
		return nil
	}
	return fmt.Errorf("%w: unknown id option %d, or invalid value %d", verbs.ErrInvalid, option, value)
}

// maxAckTimeout is the largest encoded timeout: 4.096 µs × 2³¹, 2.4 h.
const maxAckTimeout = 31

// QueryID carries out provider.QueryID.
func (s *Session) QueryID(r provider.QueryIDRequest) (grant provider.QueryIDGrant, err error) {
	err = s.withID(r.ID, func(i *ID) error {
		grant = provider.QueryIDGrant{PortSpace: i.space, QPType: i.kind, Local: i.source, Remote: i.dest, OnDevice: i.onDevice()}
		if i.ends != (paths.Ends{}) {
			grant.AH = i.route()
		}
		return nil
	})
	return grant, err
}

// DestroyID carries out provider.DestroyID. It ends the operations in progress, and waits for them.
func (s *Session) DestroyID(r provider.DestroyIDRequest) error {
	i, err := s.takeID(r.ID)
	if err != nil {
		return err
	}
	defer s.work.Done()
	i.channel.awaitTaken(&s.mu)
	i.work.Wait()
	for _, j := range i.joins {
		j.leave()
	}
	i.free()
	return nil
}

// takeID removes an id from the session's table. The session waits for work.Done.
func (s *Session) takeID(handle provider.Handle) (*ID, error) {
	if err := s.enterToFree(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	i, err := s.ids.Get(handle)
	if err != nil {
		return nil, err
	}
	s.ids.Remove(handle)
	s.endID(i)
	s.work.Add(1)
	return i, nil
}

// endID ends the operations of an id, and drops its events.
func (s *Session) endID(i *ID) {
	i.state = idDestroyed
	i.cancel()
	i.leaveCM()
	for at := i.events.Front(); at != nil; at = at.Next() {
		i.channel.remove(at.Value.(*idEvent))
	}
	i.events.Init()
	i.channel.settle()
	i.channel.ids--
}

// free frees the resources of an id, except its memberships, which belong to the session. All its operations have
// ended.
func (i *ID) free() {
	s := i.session
	if i.path != nil {
		s.manager.Paths.Leave(i.path, s.program)
	}
	if i.binding != nil {
		s.manager.Ports.release(i.binding)
	}
}

// beginWork starts an operation without the lock. Neither the id nor the session is freed before endWork.
func (i *ID) beginWork() {
	i.session.work.Add(1)
	i.work.Add(1)
}

func (i *ID) endWork() {
	i.work.Done()
	i.session.work.Done()
}
