package membership

import (
	"errors"
	"net/netip"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/internal/host"
	"golang.org/x/sys/unix"
)

// minIPv6MTU is the MTU below which the kernel takes IPv6 from an interface, and with
// it all memberships, which do not come back by themselves (RFC 8200, section 5).
const minIPv6MTU = 1280

// putRight sees to it that what is joined is so on the interface as it stands.
func (m *Memberships) putRight(s sight) {
	if s.name != m.ifname {
		m.log.Info("the interface has another name", "was", m.ifname, "interface", s.name)
		m.ifname, m.addresses.ifname = s.name, s.name
	}
	m.mtu = s.mtu
	for group, one := range m.joined {
		if m.ended != nil {
			return // it has gone meanwhile
		}
		if group.Is6() && s.mtu < minIPv6MTU {
			m.loseIPv6(group, one)
			continue
		}
		m.keep(group, one, s)
	}
	m.replaceStandIns(placementOf(s.addresses))
}

// loseIPv6 notes that the kernel has left a group.
func (m *Memberships) loseIPv6(group netip.Addr, one *membership) {
	if isLost(one.hold) {
		return
	}
	m.log.Error("a group is not joined until the MTU is at least 1280", "group", group, "interface", m.ifname, "mtu", m.mtu)
	_ = one.hold.release()
	one.hold = lost{}
}

// keep joins a group again that is no longer joined.
func (m *Memberships) keep(group netip.Addr, one *membership, s sight) {
	missing := s.isLeft(group, one.others)
	one.others = s.others(group)
	switch one.hold.(type) {
	case addressHold:
		m.keepAddress(group, one, has(s.addresses, group, isOurs), missing)
	case borrowed:
		if !has(s.addresses, group, hasAutojoin) {
			m.rejoin(group, one)
		} else if missing {
			m.complain(group, m.useSocket(group, one))
		}
	case lost:
		m.rejoin(group, one)
	default:
		if missing {
			m.log.Info("the kernel has left a group, which is joined again", "group", group, "interface", m.ifname)
			m.complain(group, one.hold.release())
			m.rejoin(group, one)
		}
	}
}

// keepAddress puts an address of ours back that is gone, or in spite of which the kernel has left
// the group.
func (m *Memberships) keepAddress(group netip.Addr, one *membership, there, missing bool) {
	if there && !missing {
		return
	}
	if there {
		m.complain(group, m.addresses.remove(group))
	}
	if !m.restore(group, one) {
		m.rejoin(group, one)
	}
}

// rejoin joins a group whose hold is nothing any more.
func (m *Memberships) rejoin(group netip.Addr, one *membership) {
	hold, err := m.join(group)
	if err != nil {
		hold = lost{}
		if one.hold != hold {
			m.complain(group, err)
		}
	}
	one.hold = hold
}

// restore puts an address of ours back that is gone, and says whether that is all: else
// somebody has put another there. Where it is removed again and again a socket joins.
func (m *Memberships) restore(group netip.Addr, one *membership) bool {
	wasGone, ours, err := m.addresses.restore(group)
	m.complain(group, err)
	if !ours || !wasGone || !one.restored.isUp(time.Now()) {
		return ours
	}
	m.log.Warn("group joined by a socket, not by an address", "group", group, "interface", m.ifname, "reason", errRemoved)
	m.complain(group, m.useSocket(group, one))
	return true
}

// useSocket joins a group by a socket instead of what holds it.
func (m *Memberships) useSocket(group netip.Addr, one *membership) error {
	socket, err := joinBySocket(m.namespace, m.index, group)
	if err != nil {
		return err
	}
	held := one.hold
	one.hold = socket
	return held.release()
}

// lost is what is left when a group could not be joined again; see waitsForMore.
type lost struct{}

// release implements hold.
func (lost) release() error { return nil }

// describe implements hold.
func (lost) describe() (via Method, foreign bool) { return Auto, false }

// waitsForMore says whether a group is lost that may be joined again. IPv6 comes back with news.
func (m *Memberships) waitsForMore() bool {
	for group, one := range m.joined {
		if isLost(one.hold) && (group.Is4() || m.mtu >= minIPv6MTU) {
			return true
		}
	}
	return false
}

// complain logs what could not be done for a group, unless there is one reason for all.
func (m *Memberships) complain(group netip.Addr, err error) {
	if err == nil || !m.exists() {
		return
	}
	m.log.Error("a group may no longer be joined", "group", group, "interface", m.ifname, "error", err)
}

// exists says whether the interface is there.
func (m *Memberships) exists() bool {
	if _, err := m.addresses.queries.Link(); errors.Is(err, host.ErrNoInterface) {
		m.vanish()
	}
	return m.ended == nil
}

// vanish is called when the interface has gone, to wherever: another one of its name
// is not it.
func (m *Memberships) vanish() {
	if m.ended == nil {
		m.ended = errGone
		if len(m.joined) > 0 {
			m.log.Error("the interface has gone, and with it its groups", "interface", m.ifname)
		}
	}
}

// errGone is the error of a Join after that.
var errGone = errno.New("the interface has gone", unix.ENODEV)
