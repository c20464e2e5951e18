package membership

import (
	"errors"
	"net/netip"
	"time"

	"github.com/roced/roced/internal/errno"
	"github.com/roced/roced/internal/host"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// follow puts back what others remove, removes the local routes that the kernel makes
// at every link up, and sees when the interface goes.
func (m *Memberships) follow() {
	defer close(m.followed)
	for {
		messages, _, err := m.news.Receive()
		m.mu.Lock()
		if errors.Is(m.ended, errClosed) {
			m.mu.Unlock()
			return
		}
		switch {
		case errors.Is(err, unix.ENOBUFS):
			m.repair()
		case err != nil:
			m.log.Error("groups are joined, but no longer followed", "interface", m.ifname, "error", err)
			m.mu.Unlock()
			return
		}
		for _, message := range messages {
			m.heed(message.Header.Type, message.Data)
		}
		m.mu.Unlock()
	}
}

// heed looks at one piece of news.
func (m *Memberships) heed(kind uint16, data []byte) {
	switch kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		// With a family, it is told as the port of a bridge.
		if len(data) >= unix.SizeofIfInfomsg && data[0] == unix.AF_UNSPEC && host.InterfaceOf(data) == m.index {
			m.heedLink(kind, data[unix.SizeofIfInfomsg:])
		}
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		if len(data) >= unix.SizeofIfAddrmsg && host.InterfaceOf(data) == m.index {
			m.heedAddress(kind, int(data[1]), addressIn(data[unix.SizeofIfAddrmsg:], unix.IFA_ADDRESS))
		}
	case unix.RTM_NEWROUTE:
		m.heedRoute(data)
	}
}

// minIPv6MTU is the MTU below which the kernel takes IPv6 from an interface, and with
// it all memberships, which do not come back by themselves (RFC 8200, section 5).
const minIPv6MTU = 1280

// heedLink looks at a change of the interface.
func (m *Memberships) heedLink(kind uint16, attributes []byte) {
	if kind == unix.RTM_DELLINK {
		m.vanish()
		return
	}
	if name := nameIn(attributes); name != "" && name != m.ifname {
		m.log.Info("the interface has another name", "was", m.ifname, "interface", name)
		m.ifname, m.addresses.ifname = name, name
	}
	if mtu := numberIn(attributes, unix.IFLA_MTU); mtu != 0 && mtu < minIPv6MTU {
		m.loseIPv6(mtu)
	}
}

func (m *Memberships) loseIPv6(mtu int) {
	for group, one := range m.joined {
		if _, already := one.hold.(lost); group.Is6() && !already {
			m.log.Error("a group is not joined until the MTU is at least 1280", "group", group, "interface", m.ifname, "mtu", mtu)
			_ = one.hold.release()
			one.hold = lost{}
		}
	}
}

// retry joins what was lost. It is called with every new address, since IPv6 comes back
// with the link-local one.
func (m *Memberships) retry() {
	for group, one := range m.joined {
		if _, is := one.hold.(lost); is {
			m.rejoin(group, one)
		}
	}
}

// heedAddress looks at a change of the interface's addresses.
func (m *Memberships) heedAddress(kind uint16, length int, group netip.Addr) {
	if kind == unix.RTM_NEWADDR {
		m.retry()
	}
	if !group.IsValid() {
		return // IPv6
	}
	if !group.IsMulticast() {
		m.putBehind()
		m.replaceStandIns()
		return
	}
	one, ok := m.joined[group]
	if !ok || kind == unix.RTM_NEWADDR {
		return
	}
	// The kernel leaves the group with whichever of its addresses is removed: with a
	// shorter prefix, it was another than ours.
	if _, ours := one.hold.(addressHold); ours && length != 32 {
		m.complain(group, m.addresses.remove(group))
	}
	m.rejoin(group, one)
}

// heedRoute removes the local route of an address of ours.
func (m *Memberships) heedRoute(data []byte) {
	// struct rtmsg: destination's length at 1, type at 7.
	if len(data) < unix.SizeofRtMsg || data[1] != 32 || data[7] != unix.RTN_LOCAL {
		return
	}
	attributes := data[unix.SizeofRtMsg:]
	one, ok := m.joined[addressIn(attributes, unix.RTA_DST)]
	if !ok || numberIn(attributes, unix.RTA_OIF) != m.index {
		return
	}
	if ours, ok := one.hold.(addressHold); ok {
		m.complain(ours.group, m.addresses.dropRoute(ours.group, numberIn(attributes, unix.RTA_TABLE)))
	}
}

// repair is for when news were lost.
func (m *Memberships) repair() {
	if !m.exists() {
		return
	}
	for group, one := range m.joined {
		m.rejoin(group, one)
	}
	m.putBehind()
	m.replaceStandIns()
}

// rejoin sees to it that a group is joined whose address may be gone.
func (m *Memberships) rejoin(group netip.Addr, one *membership) {
	switch one.hold.(type) {
	case socketHold, standIn:
		return
	case addressHold:
		if m.restore(group, one) {
			return
		}
	}
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
	socket, err := joinBySocket(m.space, m.index, group)
	if err != nil {
		m.complain(group, err)
		return true
	}
	m.log.Warn("group joined by a socket, not by an address", "group", group, "interface", m.ifname, "reason", errRemoved)
	m.complain(group, one.hold.release())
	one.hold = socket
	return true
}

// lost is what is left when a group could not be joined again; see retry.
type lost struct{}

// release implements hold.
func (lost) release() error { return nil }

// describe implements hold.
func (lost) describe() (via Method, foreign bool) { return Auto, false }

// complain logs what could not be done for a group, unless there is one reason for all.
func (m *Memberships) complain(group netip.Addr, err error) {
	if err == nil || !m.exists() {
		return
	}
	m.log.Error("a group may no longer be joined", "group", group, "interface", m.ifname, "error", err)
}

// exists says whether the interface is there.
func (m *Memberships) exists() bool {
	_, err := m.addresses.netlink.LinkByIndex(m.index)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
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
