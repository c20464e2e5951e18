//go:build linux

package hca

import (
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// What connection management (package ids) knows of cards and sessions.

// cmCard is a card: ids.Card.
type cmCard struct{ card *Card }

func (c cmCard) Name() string                                  { return c.card.Name() }
func (c cmCard) Ended() <-chan struct{}                        { return c.card.life.done }
func (c cmCard) GIDIndex(gid wire.GID) (int, error)            { return c.card.gidIndex(gid) }
func (c cmCard) GUID() uint64                                  { return guid(c.card.port().MAC) }
func (c cmCard) AHAttr(e paths.Ends, class uint8) verbs.AHAttr { return c.card.attrOf(e, class) }
func (c cmCard) FindEnds(source, dest netip.Addr) (from, to netip.Addr, err error) {
	return c.card.findEnds(source, dest)
}

func (c cmCard) LoopbackEnd(from, to netip.Addr) (netip.Addr, error) {
	return c.card.loopbackEnd(from, to)
}

func (c cmCard) Own(a netip.Addr) (netip.Addr, error) {
	return c.card.ownAddress(a)
}

func (c cmCard) PortRules() host.PortRules { return c.card.host.PortRules() }

func (c cmCard) ActiveMTU() wire.MTU {
	return c.card.port().rdma
}

func (c cmCard) NoteFault(cause error) {
	c.card.faults.Add(1)
	c.card.logFault(cause, "device", c.card.Name(), "in", "connection management")
}

// cmProgram is a session whose program has ids: ids.Program.
type cmProgram struct{ *Session }

func (p cmProgram) MayBindService() bool  { return p.mayBindService() }
func (p cmProgram) BindPrivilege() string { return p.bindPrivilege() }
func (p cmProgram) Block(call func()) {
	if p.config.Block != nil {
		p.config.Block(call)
		return
	}
	go call()
}
func (p cmProgram) PrepareJoin(r provider.JoinMulticastRequest) (ids.Join, error) {
	return prepareJoin(p.Session, r)
}

func (p cmProgram) LeaveMulticast(r provider.LeaveMulticastRequest) error {
	return leaveMulticast(p.Session, r)
}

// ownSession is the card's own, for QP 1: ids.CardSession. No program sees it, and it counts against no limit.
type ownSession struct{ *Session }

// Settle implements ids.CardSession.
func (s ownSession) Settle(timeout time.Duration) { s.entry.Engine().Settle(s.entry, timeout) }

// openOwn makes the card's own session.
func (card *Card) openOwn(wake func()) (ids.CardSession, error) {
	config := SessionConfig{Wake: func(uint64) { wake() }, Privileged: func() bool { return true }}
	s, err := card.newSession(config, true)
	if err != nil {
		return nil, err
	}
	card.locked(func() { card.own = s })
	return ownSession{s}, nil
}

// IDInfo is a connection id as commands of the service show it.
type IDInfo = ids.Info

// IDs lists ids, at most so many, from a place on, as Objects does.
func (s *Session) IDs(from Cursor, most int) (list []IDInfo, next Cursor, more bool, err error) {
	list, next.Place, more, err = s.cm.List(from.Place, most)
	return list, next, more, err
}
