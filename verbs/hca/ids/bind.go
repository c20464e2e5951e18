//go:build linux

package ids

import (
	"fmt"
	"net/netip"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// BindID implements provider.Provider.
func (s *Session) BindID(r provider.BindIDRequest) (grant provider.BindIDGrant, err error) {
	err = s.withID(r.ID, func(i *ID) error {
		if err := i.in("bind", idIdle); err != nil {
			return err
		}
		err := s.bind(i, r.Address, r.Shared)
		grant.Address = i.source
		return err
	})
	return grant, err
}

// bind gives an id an address and a port. The session is locked.
func (s *Session) bind(i *ID, to netip.AddrPort, shared bool) error {
	address, err := s.manager.Card.Own(to.Addr())
	if err != nil {
		return err
	}
	if to.Port() != 0 && to.Port() < privilegedPorts && !s.program.MayPrivileged() {
		return fmt.Errorf("%w: %w: port %d; those below %d need %s", verbs.ErrPermission, unix.EACCES, to.Port(), privilegedPorts, s.program.Privilege())
	}
	b := &binding{portKey: portKey{i.space, to.Port()}, address: address, reuse: i.reuse, afonly: i.afonly, user: s.user}
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
