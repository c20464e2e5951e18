// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/ib"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/paths"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// FindRoute carries out provider.FindRoute.
func (s *Session) FindRoute(r provider.FindRouteRequest) (grant provider.FindRouteGrant, err error) {
	if err := s.begin(); err != nil {
		return grant, err
	}
	defer s.work.Done()
	grant.Source, _, err = s.manager.Card.FindEnds(r.Source, r.Dest)
	return grant, network.HostError(err)
}

// resolution is a search for the path from an id to a destination.
type resolution struct {
	id     *ID
	source netip.Addr
	dest   netip.AddrPort
	path   *paths.Path // the id becomes a user of it
}

// ResolveIDAddr carries out provider.ResolveIDAddr. It returns an error immediately if there is no route; the event
// reports whether the next hop responds.
func (s *Session) ResolveIDAddr(request provider.ResolveIDAddrRequest) error {
	r, err := s.startResolving(&request)
	if err != nil {
		return err
	}
	if err := r.find(); err != nil {
		r.abandon()
		r.id.endWork()
		return network.HostError(err)
	}
	go func() {
		defer r.id.endWork()
		if !r.finish(r.await(request.Timeout)) {
			s.manager.Paths.Leave(r.path, s.program)
		}
	}()
	return nil
}

// startResolving binds the id if necessary.
func (s *Session) startResolving(r *provider.ResolveIDAddrRequest) (*resolution, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	i, err := s.ids.Get(r.ID)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(i.in("resolve an address for", idIdle, idBound), i.room()); err != nil {
		return nil, err
	}
	if !r.Dest.Addr().IsValid() {
		return nil, fmt.Errorf("%w: no destination address", verbs.ErrInvalid)
	}
	if i.state == idIdle {
		from := r.Source
		if !from.Addr().IsValid() {
			from = netip.AddrPortFrom(anyAddress(r.Dest.Addr().Unmap()), from.Port())
		}
		if err := s.bind(i, from, false, 0); err != nil {
			return nil, err
		}
	}
	i.state = idResolving
	i.beginWork()
	return &resolution{id: i, source: i.source.Addr(), dest: r.Dest}, nil
}

// find finds the path. It queries the host.
func (r *resolution) find() (err error) {
	s := r.id.session
	if r.source, r.dest, err = s.manager.Ports.meet(s.manager.Card, r.id.space, r.source, r.dest); err != nil {
		return err
	}
	source, dest, err := s.manager.Card.FindEnds(r.source, r.dest.Addr())
	if err != nil {
		return err
	}
	r.source, r.dest = source, netip.AddrPortFrom(dest, r.dest.Port())
	ends, err := endsOf(s.manager.Card, source, dest)
	if err != nil {
		return err
	}
	if r.path, err = s.manager.Paths.TakeInTurn(r.id.life, ends, s.program); err != nil {
		return err
	}
	if err = r.path.Err(); err != nil {
		s.manager.Paths.Leave(r.path, s.program)
	}
	return err
}

// endsOf returns the GIDs of two addresses: for a local address, that of the card's address that represents it.
func endsOf(card Card, from, to netip.Addr) (paths.Ends, error) {
	if !card.Local(from) && !card.Local(to) {
		return paths.Ends{Source: wire.GIDFromAddr(from), Dest: wire.GIDFromAddr(to)}, nil
	}
	own, err := card.LoopbackEnd(from, to)
	return paths.Ends{Source: wire.GIDFromAddr(own), Dest: wire.GIDFromAddr(own)}, err
}

// abandon resets the id after a failure.
func (r *resolution) abandon() {
	i := r.id
	i.session.mu.Lock()
	defer i.session.mu.Unlock()
	if i.state == idResolving {
		i.state = idBound
	}
}

// await waits for the next hop to answer, until the timeout or the end of the id.
func (r *resolution) await(timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(r.id.life, timeout)
	defer cancel()
	return r.id.session.manager.Paths.Await(ctx, r.path, r.id.session.program)
}

// finish reports the result of the resolution; it returns false if the id does not use the path.
func (r *resolution) finish(failed error) bool {
	i, s := r.id, r.id.session
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case i.state != idResolving:
		return false
	case failed != nil:
		i.state = idBound
		i.put(&idEvent{CMEvent: provider.CMEvent{Type: ib.CMEventAddrError, Status: statusOf(failed)}})
		return false
	}
	s.manager.Ports.narrow(i.binding, r.source)
	i.path, i.ends, i.state = r.path, r.path.Ends(), idAddrResolved
	i.source, i.dest = netip.AddrPortFrom(r.source, i.source.Port()), r.dest
	i.put(&idEvent{CMEvent: provider.CMEvent{Type: ib.CMEventAddrResolved}})
	return true
}

// ResolveIDRoute carries out provider.ResolveIDRoute. On Ethernet, resolving the address also resolves the route.
func (s *Session) ResolveIDRoute(r provider.ResolveIDRouteRequest) error {
	return s.withID(r.ID, func(i *ID) error {
		if err := errors.Join(i.in("resolve a route for", idAddrResolved), i.room()); err != nil {
			return err
		}
		i.state = idRouteResolved
		i.put(&idEvent{CMEvent: provider.CMEvent{Type: ib.CMEventRouteResolved}})
		return nil
	})
}

// SetIDPath carries out provider.SetIDPath: the program sets the route, which must lead from the id's address to its
// destination.
func (s *Session) SetIDPath(r provider.SetIDPathRequest) error {
	return s.withID(r.ID, func(i *ID) error {
		if err := errors.Join(i.in("set the path of", idAddrResolved), i.room()); err != nil {
			return err
		}
		own, given := i.route(), r.Path
		switch {
		case given.GRH.DGID != own.GRH.DGID || given.GRH.SGIDIndex != own.GRH.SGIDIndex || given.Port != own.Port:
			return fmt.Errorf("%w: a path from index %d to %v; the path of the id leads from index %d to %v",
				verbs.ErrInvalid, given.GRH.SGIDIndex, given.GRH.DGID, own.GRH.SGIDIndex, own.GRH.DGID)
		case given.SL > 7 || given.GRH.FlowLabel > 0xFFFFF:
			return fmt.Errorf("%w: service level %d and flow label 0x%x, at most 7 and 20 bits", verbs.ErrInvalid, given.SL, given.GRH.FlowLabel)
		}
		i.given, i.tos, i.state = &given, given.GRH.TrafficClass, idRouteResolved
		i.put(&idEvent{CMEvent: provider.CMEvent{Type: ib.CMEventRouteResolved}})
		return nil
	})
}

// route describes the address handle to the destination.
func (i *ID) route() verbs.AHAttr {
	if i.given != nil {
		return *i.given
	}
	return i.session.manager.Card.AHAttr(i.ends, i.tos)
}

// anyAddress returns 0.0.0.0 or ::, by the IP version of an address.
func anyAddress(of netip.Addr) netip.Addr {
	if of.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// BindID carries out provider.BindID.
func (s *Session) BindID(r provider.BindIDRequest) (grant provider.BindIDGrant, err error) {
	err = s.withID(r.ID, func(i *ID) error {
		if err := i.in("bind", idIdle); err != nil {
			return err
		}
		err := s.bind(i, r.Address, r.Shared, r.Whose)
		grant.Address = i.source
		return err
	})
	return grant, err
}

// bind binds an id to an address and a port. The session is locked.
func (s *Session) bind(i *ID, to netip.AddrPort, shared bool, whose uint64) error {
	card := s.manager.Card
	address, err := card.Own(to.Addr())
	if err != nil {
		return err
	}
	rules := card.PortRules()
	if to.Port() != 0 && int(to.Port()) < rules.Unprivileged && !s.config.MayBindService() {
		return errno.Kin(fmt.Sprintf("not permitted: port %d; ports below %d (sysctl net.ipv4.ip_unprivileged_port_start) need %s",
			to.Port(), rules.Unprivileged, s.config.BindPrivilege), unix.EACCES, verbs.ErrPermission) // EACCES crosses to C, as of bind(2)
	}
	if !i.afonlySet { // like the kernel's cma
		i.afonly = address.Is4() || rules.BindV6Only
	}
	b := &binding{portKey: portKey{i.space, to.Port()}, address: address, card: card, local: card.OneMachine() && card.Local(address), reuse: i.reuse, afonly: i.afonly, user: s.config.Quota, whose: whose, rules: rules}
	if shared {
		err = s.manager.Ports.share(b)
	} else {
		err = s.manager.Ports.bind(b)
	}
	if err != nil {
		return err
	}
	i.binding, i.source, i.state = b, netip.AddrPortFrom(address, b.port), idBound
	return nil
}
