// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"net/netip"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// minIPv6MTU is the smallest MTU for IPv6 (RFC 8200, section 5), in bytes. Below it the kernel disables IPv6 on an
// interface and drops all IPv6 memberships, which it does not restore.
const minIPv6MTU = 1280

// reconcile joins again the groups that the interface has lost.
func (m *Memberships) reconcile(s snapshot) {
	if s.name != m.ifname {
		m.log.Info("the interface was renamed", "was", m.ifname, "interface", s.name)
		m.ifname, m.addresses.ifname = s.name, s.name
	}
	m.mtu = s.mtu
	for group, one := range m.joined {
		if m.ended != nil {
			return // the interface no longer exists
		}
		if group.Is6() && s.mtu < minIPv6MTU {
			m.loseIPv6(group, one)
			continue
		}
		m.keep(group, one, s)
	}
	m.replaceStandIns(placementOf(s.addresses))
}

// loseIPv6 marks a group as lost because the MTU is too small.
func (m *Memberships) loseIPv6(group netip.Addr, one *membership) {
	if isLost(one.hold) {
		return
	}
	m.log.Error("an IPv6 group is lost: the kernel disables IPv6 below MTU 1280; the group is joined again when the MTU is larger", "group", group, "interface", m.ifname, "mtu", m.mtu)
	_ = one.hold.release()
	one.hold = lost{}
}

// keep joins a group again if it is no longer joined.
func (m *Memberships) keep(group netip.Addr, one *membership, s snapshot) {
	missing := s.isLeft(group, one.foreign)
	one.foreign = s.foreign(group)
	switch one.hold.(type) {
	case addressHold:
		m.keepAddress(group, one, has(s.addresses, group, isOurs), missing)
	case borrowed:
		if !has(s.addresses, group, hasAutojoin) {
			m.rejoin(group, one)
		} else if missing {
			m.logFailure(group, m.useSocket(group, one))
		}
	case lost:
		m.rejoin(group, one)
	default:
		if missing {
			m.log.Info("the kernel has left a group; joining it again", "group", group, "interface", m.ifname)
			m.logFailure(group, one.hold.release())
			m.rejoin(group, one)
		}
	}
}

// keepAddress restores an address of ours that is missing, or that exists although the kernel has left the group.
func (m *Memberships) keepAddress(group netip.Addr, one *membership, there, missing bool) {
	if there && !missing {
		return
	}
	if there {
		m.logFailure(group, m.addresses.remove(group))
	}
	if !m.restore(group, one) {
		m.rejoin(group, one)
	}
}

// rejoin joins a group whose hold is no longer valid.
func (m *Memberships) rejoin(group netip.Addr, one *membership) {
	hold, err := m.join(group)
	if err != nil {
		hold = lost{}
		if one.hold != hold {
			m.logFailure(group, err)
		}
	}
	one.hold = hold
}

// restore restores an address of ours. It returns false if another program has replaced the address. If the address is
// removed repeatedly, it uses a socket instead.
func (m *Memberships) restore(group netip.Addr, one *membership) bool {
	wasGone, ours, err := m.addresses.restore(group)
	m.logFailure(group, err)
	if !ours || !wasGone || !one.restored.exceeded(time.Now()) {
		return ours
	}
	m.log.Warn("group is joined by a socket from now on, not by an address", "group", group, "interface", m.ifname, "reason", errRemoved)
	m.logFailure(group, m.useSocket(group, one))
	return true
}

// useSocket replaces a group's hold by a socket.
func (m *Memberships) useSocket(group netip.Addr, one *membership) error {
	socket, err := joinBySocket(m.namespace, m.index, group)
	if err != nil {
		return err
	}
	held := one.hold
	one.hold = socket
	return held.release()
}

// lost is the hold of a group that could not be joined again; see waitsForMore.
type lost struct{}

// release implements hold.
func (lost) release() error { return nil }

// describe implements hold.
func (lost) describe() (via Method, foreign bool) { return Auto, false }

// waitsForMore reports whether joining a lost group should be retried later. IPv6 groups on an interface whose MTU is
// too small are retried when a change of the interface is reported.
func (m *Memberships) waitsForMore() bool {
	for group, one := range m.joined {
		if isLost(one.hold) && (group.Is4() || m.mtu >= minIPv6MTU) {
			return true
		}
	}
	return false
}

// logFailure logs that a group could not be kept, unless the interface no longer exists.
func (m *Memberships) logFailure(group netip.Addr, err error) {
	if err == nil || !m.exists() {
		return
	}
	m.log.Error("a group may no longer be joined: switches may stop forwarding its packets here", "group", group, "interface", m.ifname, "error", err)
}

// exists reports whether the interface still exists.
func (m *Memberships) exists() bool {
	if _, err := m.addresses.queries.Link(); errors.Is(err, host.ErrNoInterface) {
		m.noteGone()
	}
	return m.ended == nil
}

// noteGone records that the interface was removed or moved to another namespace. A new interface with the same name is
// a different interface.
func (m *Memberships) noteGone() {
	if m.ended == nil {
		m.ended = errGone
		if len(m.joined) > 0 {
			m.log.Error("the interface has gone; its groups are no longer joined", "interface", m.ifname)
		}
	}
}

// errGone is the error of a Join after the interface was removed.
var errGone = errno.New("the interface has gone", unix.ENODEV)
