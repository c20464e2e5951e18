//go:build linux

package hca

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/host"
	"github.com/roced/roced/mcast"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
)

// FindRoute implements provider.Provider.
func (s *Session) FindRoute(r provider.FindRouteRequest) (grant provider.FindRouteGrant, err error) {
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.commands.Done()
	grant.Source, _, err = s.card.findEnds(r.Source, r.Dest)
	return grant, hostError(err)
}

// findEnds gives the addresses of a message to a destination: the source may be left to the host, and
// a destination of 0.0.0.0 or :: is the source. It holds no lock of the caller's.
func (card *Card) findEnds(source, dest netip.Addr) (from, to netip.Addr, err error) {
	if from, to, err = card.checkEnds(source, dest); err != nil || !from.IsUnspecified() {
		return from, to, err
	}
	card.asking.Lock()
	from, err = card.host.Source(to)
	card.asking.Unlock()
	switch {
	case errors.Is(err, host.ErrNoRoute), errors.Is(err, host.ErrLocal):
		return from, to, fmt.Errorf("%w: the host does not reach %v through %s: %w; ip route get %[2]v", verbs.ErrUnreachable, dest, card.Name(), err)
	case err != nil:
		return from, to, err
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	if from.IsValid() && card.gids.contains(wire.GIDFromAddr(from)) {
		return from, to, nil
	}
	from, err = card.bestSource(to.Is4())
	return from, to, err
}

// checkEnds is findEnds as far as the card itself knows: from is 0.0.0.0 or :: if the host must say.
func (card *Card) checkEnds(source, dest netip.Addr) (from, to netip.Addr, err error) {
	to = dest.Unmap()
	if !to.IsValid() {
		return from, to, fmt.Errorf("%w: no destination", verbs.ErrInvalid)
	}
	if to.IsMulticast() {
		if _, err := mcast.MGID(to); err != nil {
			return from, to, fmt.Errorf("%w: %w", verbs.ErrInvalid, err)
		}
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	from = anyAddress(to)
	if source.IsValid() {
		if from, err = card.own(source); err != nil {
			return from, to, err
		}
	}
	zone := to.Zone()
	to = to.WithZone("")
	switch {
	case from.Is4() != to.Is4():
		return from, to, fmt.Errorf("%w: source %v and destination %v are not of one IP version", verbs.ErrInvalid, from, to)
	case zone != "" && zone != card.Name():
		return from, to, fmt.Errorf("%w: %v is on the link of %s, not of %s", verbs.ErrUnreachable, to, zone, card.Name())
	case !from.IsUnspecified() && to.IsUnspecified():
		return from, from, nil
	case from.IsUnspecified() && to.IsUnspecified():
		from, err = card.bestSource(to.Is4())
		return from, from, err
	case from.IsUnspecified() && card.gids.contains(wire.GIDFromAddr(to)):
		return to, to, nil
	}
	return from, to, nil
}

// anyAddress is 0.0.0.0 or ::, as an address's version is.
func anyAddress(of netip.Addr) netip.Addr {
	if of.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// bestSource is an own address to send from: a link-local one only if there is no other. The caller
// holds card.mu.
func (card *Card) bestSource(v4 bool) (netip.Addr, error) {
	best := card.gids.best(v4)
	if best.IsZero() {
		return netip.Addr{}, fmt.Errorf("%w: %s has no address of that IP version to send from; ip address add", verbs.ErrNoGID, card.Name())
	}
	return best.Addr(), nil
}

// ResolveIDAddr implements provider.Provider. That there is no route is found at once; whether the next hop
// answers is told by the event.
func (s *Session) ResolveIDAddr(r provider.ResolveIDAddrRequest) error {
	i, err := s.startResolving(&r)
	if err != nil {
		return err
	}
	source, dest, p, err := s.resolvePath(i, r.Dest.Addr())
	if err != nil {
		s.stopResolving(i)
		s.endWork(i)
		return hostError(err)
	}
	go func() {
		defer s.endWork(i)
		err := s.awaitHop(i, p, r.Timeout)
		if !s.resolved(i, p, source, netip.AddrPortFrom(dest, r.Dest.Port()), err) {
			s.card.paths.Leave(p)
		}
	}()
	return nil
}

// startResolving binds the id if need be.
func (s *Session) startResolving(r *provider.ResolveIDAddrRequest) (*id, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.card.mu.Unlock()
	i, err := s.ids.get(r.ID)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(i.in("resolve an address for", idIdle, idBound), i.room()); err != nil {
		return nil, err
	}
	if !r.Dest.Addr().IsValid() {
		return nil, fmt.Errorf("%w: no destination", verbs.ErrInvalid)
	}
	if i.state == idIdle {
		from := r.Source
		if !from.Addr().IsValid() {
			from = netip.AddrPortFrom(anyAddress(r.Dest.Addr().Unmap()), from.Port())
		}
		if err := s.bind(i, from, false); err != nil {
			return nil, err
		}
	}
	i.state = idResolving
	s.beginWork(i)
	return i, nil
}

// resolvePath finds the path to a destination, which the id becomes a user of.
func (s *Session) resolvePath(i *id, dest netip.Addr) (from, to netip.Addr, p *paths.Path, err error) {
	s.card.mu.Lock()
	from = i.source.Addr()
	s.card.mu.Unlock()
	if from, to, err = s.card.findEnds(from, dest); err != nil {
		return from, to, nil, err
	}
	if p, err = s.card.paths.Take(paths.Ends{Source: wire.GIDFromAddr(from), Dest: wire.GIDFromAddr(to)}); err != nil {
		return from, to, nil, err
	}
	if err = p.Err(); err != nil {
		s.card.paths.Leave(p)
	}
	return from, to, p, err
}

// stopResolving puts the id back after a failure.
func (s *Session) stopResolving(i *id) {
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	if i.state == idResolving {
		i.state = idBound
	}
}

// awaitHop waits for the next hop to answer, until the timeout or the end of the id.
func (s *Session) awaitHop(i *id, p *paths.Path, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(i.life, timeout)
	defer cancel()
	return s.card.paths.Await(ctx, p, s)
}

// resolved reports the end of a resolution; false if the id has no use for the path.
func (s *Session) resolved(i *id, p *paths.Path, source netip.Addr, dest netip.AddrPort, failed error) bool {
	s.card.mu.Lock()
	defer s.card.mu.Unlock()
	switch {
	case i.state != idResolving:
		return false
	case failed != nil:
		i.state = idBound
		i.put(&idEvent{CMEvent: provider.CMEvent{Type: verbs.CMEventAddrError, Status: statusOf(failed)}})
		return false
	}
	s.card.ports.narrow(i.binding, source)
	i.path, i.ends, i.state = p, p.Ends(), idAddrResolved
	i.source, i.dest = netip.AddrPortFrom(source, i.source.Port()), dest
	i.put(&idEvent{CMEvent: provider.CMEvent{Type: verbs.CMEventAddrResolved}})
	return true
}

// ResolveIDRoute implements provider.Provider. On Ethernet the route is known with the address.
func (s *Session) ResolveIDRoute(r provider.ResolveIDRouteRequest) error {
	return s.withID(r.ID, func(i *id) error {
		if err := errors.Join(i.in("resolve a route for", idAddrResolved), i.room()); err != nil {
			return err
		}
		i.state = idRouteResolved
		i.put(&idEvent{CMEvent: provider.CMEvent{Type: verbs.CMEventRouteResolved}})
		return nil
	})
}
