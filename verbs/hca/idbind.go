//go:build linux

package hca

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// BindID implements provider.Provider.
func (s *Session) BindID(r provider.BindIDRequest) (grant provider.BindIDGrant, err error) {
	err = s.withID(r.ID, func(i *id) error {
		if err := i.in("bind", idIdle); err != nil {
			return err
		}
		err := s.bind(i, r.Address, r.Shared)
		grant.Address = i.source
		return err
	})
	return grant, err
}

// bind gives an id an address and a port. The caller holds card.mu.
func (s *Session) bind(i *id, to netip.AddrPort, shared bool) error {
	address, err := s.card.own(to.Addr())
	if err != nil {
		return err
	}
	if to.Port() != 0 && to.Port() < privilegedPorts && !s.mayPrivileged() {
		return fmt.Errorf("%w: %w: port %d; those below %d need %s", verbs.ErrPermission, unix.EACCES, to.Port(), privilegedPorts, s.privilege())
	}
	b := &binding{portKey: portKey{i.space, to.Port()}, address: address, reuse: i.reuse, afonly: i.afonly, user: s.config.Quota}
	if shared {
		err = s.card.ports.share(b)
	} else {
		err = s.card.ports.bind(b)
	}
	if err != nil {
		return err
	}
	i.binding, i.source, i.state = b, netip.AddrPortFrom(address, b.port), idBound
	return nil
}

// own checks an address to bind to: one of the card's, or all. The caller holds card.mu.
func (card *Card) own(a netip.Addr) (netip.Addr, error) {
	a = a.Unmap()
	zone := a.Zone()
	switch {
	case !a.IsValid():
		return a, fmt.Errorf("%w: no address; 0.0.0.0 or :: stands for all", verbs.ErrInvalid)
	case a.IsUnspecified():
		return a, nil
	case a.IsLinkLocalUnicast() && a.Is6() && zone == "":
		return a, fmt.Errorf("%w: %v without its interface; %[2]v%%%s", verbs.ErrInvalid, a, card.Name())
	case zone != "" && zone != card.Name() || !card.gids.contains(wire.GIDFromAddr(a)):
		return a, fmt.Errorf("%w: %v is no address of %s", verbs.ErrAddrNotAvail, a, card.Name())
	}
	return a, nil
}
