// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// snapshot is the state of the interface that concerns groups.
type snapshot struct {
	name      string
	mtu       int            // bytes
	addresses []host.Address // in the kernel's order
	// missing holds joined groups of which the kernel is not a member.
	missing map[netip.Addr]struct{}
}

// observe reads the state of the interface. It returns host.ErrNoInterface if the interface no longer exists; other
// errors mean that the state could not be read.
func (m *Memberships) observe() (s snapshot, err error) {
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

// missing returns the joined groups of which the kernel is no longer a member.
func (m *Memberships) missing() (map[netip.Addr]struct{}, error) {
	v4, v6 := map[netip.Addr]struct{}{}, map[netip.Addr]struct{}{}
	for group, one := range m.joined {
		switch {
		case isLost(one.hold):
		case group.Is4():
			v4[group] = struct{}{}
		default:
			v6[group] = struct{}{}
		}
	}
	if err := m.igmp.removeListed(m.index, v4); err != nil {
		return nil, err
	}
	if err := m.mld.removeListed(m.index, v6); err != nil {
		return nil, err
	}
	maps.Copy(v4, v6)
	return v4, nil
}

// isLeft reports whether the kernel has left a group for us. foreign is the previous number of the group's foreign
// addresses. When one of them was removed, the kernel has left the group, even if the kernel's list still has it
// because of another program.
func (s *snapshot) isLeft(group netip.Addr, foreign int) bool {
	_, missing := s.missing[group]
	return missing || s.foreign(group) < foreign
}

// foreign returns the number of addresses of a group that are not ours.
func (s *snapshot) foreign(group netip.Addr) (n int) {
	for _, a := range s.addresses {
		if a.IP == group && !isOurs(a) {
			n++
		}
	}
	return n
}

// isOurs reports whether an address has our label, whose suffix remains when the interface is renamed.
func isOurs(a host.Address) bool { return strings.HasSuffix(a.Label, labelSuffix) }

// hasAutojoin reports whether an address makes the host a member of its group.
func hasAutojoin(a host.Address) bool { return a.Flags&unix.IFA_F_MCAUTOJOIN != 0 }

// has reports whether the list has an address of a group for which kind returns true.
func has(list []host.Address, group netip.Addr, kind func(host.Address) bool) bool {
	return slices.ContainsFunc(list, func(a host.Address) bool { return a.IP == group && kind(a) })
}
