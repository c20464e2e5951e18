package membership

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// sight is how the interface stands, as far as groups go.
type sight struct {
	name      string
	mtu       int            // bytes
	addresses []host.Address // in the kernel's order
	// missing are groups that are to be joined, and that the kernel is not in.
	missing map[netip.Addr]struct{}
}

// see looks at the interface. An error says that it could not be seen, and nothing of it, but for
// host.ErrNoInterface.
func (m *Memberships) see() (s sight, err error) {
	link, err := m.addresses.queries.Link()
	if err != nil {
		return s, err
	}
	s.name, s.mtu = link.Attrs().Name, link.Attrs().MTU
	if len(m.joined) == 0 {
		return s, nil
	}
	if s.addresses, err = m.addresses.queries.Addresses(); err != nil {
		return s, err
	}
	s.missing, err = m.missing()
	return s, err
}

// missing are the groups that the kernel was in for us, and is no more.
func (m *Memberships) missing() (map[netip.Addr]struct{}, error) {
	of4, of6 := map[netip.Addr]struct{}{}, map[netip.Addr]struct{}{}
	for group, one := range m.joined {
		switch {
		case isLost(one.hold):
		case group.Is4():
			of4[group] = struct{}{}
		default:
			of6[group] = struct{}{}
		}
	}
	if err := m.igmp.strike(m.index, of4); err != nil {
		return nil, err
	}
	if err := m.mld.strike(m.index, of6); err != nil {
		return nil, err
	}
	maps.Copy(of4, of6)
	return of4, nil
}

// isLeft says whether the kernel has left a group of which there were so many other addresses: it
// does with whichever of them is removed, even if a program is in the group that would keep it
// in the kernel's list.
func (s *sight) isLeft(group netip.Addr, others int) bool {
	_, missing := s.missing[group]
	return missing || s.others(group) < others
}

// others are how many addresses a group has that are not ours.
func (s *sight) others(group netip.Addr) (n int) {
	for _, a := range s.addresses {
		if a.IP == group && !isOurs(a) {
			n++
		}
	}
	return n
}

// isOurs says whether an address has our mark, which it keeps when its interface is renamed.
func isOurs(a host.Address) bool { return strings.HasSuffix(a.Label, labelSuffix) }

// hasAutojoin says whether an address makes the host a member of its group.
func hasAutojoin(a host.Address) bool { return a.Flags&unix.IFA_F_MCAUTOJOIN != 0 }

// has says whether a group has an address of some kind.
func has(list []host.Address, group netip.Addr, kind func(host.Address) bool) bool {
	return slices.ContainsFunc(list, func(a host.Address) bool { return a.IP == group && kind(a) })
}
