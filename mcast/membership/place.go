package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/internal/host"
)

// placement is where addresses of ours are among the interface's. The first address is what
// NAT's REDIRECT, SIOCGIFADDR, hostname -I, netconsole and scripts take for the interface's own.
type placement int

const (
	behind  placement = iota // an address of the host's own is the first
	inFront                  // one of ours is: the own one went and came back
	alone                    // there is no other
)

// placementOf is that of an interface's addresses, in the kernel's order.
func placementOf(list []host.Address) placement {
	isOwn := func(a host.Address) bool { return a.IP.Is4() && !a.IP.IsMulticast() }
	switch first := slices.IndexFunc(list, isOwn); {
	case first < 0:
		return alone
	case slices.ContainsFunc(list[:first], isOurs):
		return inFront
	}
	return behind
}

// putBehind keeps addresses of ours from being the interface's first, and says whether there was
// something to do. Meanwhile a socket holds each membership, so that nothing is said on the wire.
func (m *Memberships) putBehind(place placement) (done bool) {
	if place == behind {
		return false
	}
	for group, one := range m.joined {
		if ours, is := one.hold.(addressHold); is {
			m.complain(group, m.putOneBehind(one, ours, place == alone))
			done = true
		}
	}
	return done
}

// putOneBehind removes an address of ours, and adds it again unless there is nothing to be behind.
func (m *Memberships) putOneBehind(one *membership, ours addressHold, alone bool) error {
	stand, err := m.standIn(ours.group)
	if err != nil {
		return fmt.Errorf("its address may be taken for the interface's own: %w", err)
	}
	if alone {
		one.hold = stand
		return ours.release()
	}
	err = m.addresses.remove(ours.group)
	if err == nil {
		err = m.addresses.add(ours.group)
	}
	if err != nil {
		one.hold = stand
		return err
	}
	return stand.release()
}

// standIn is a socket in the place of an address, as long as the interface has no IPv4
// address of its own that the group's could stand behind.
type standIn struct{ hold }

func (m *Memberships) standIn(group netip.Addr) (hold, error) {
	socket, err := joinBySocket(m.namespace, m.index, group)
	if err != nil {
		return nil, err
	}
	return standIn{socket}, nil
}

// replaceStandIns gives groups their addresses when the interface has one of its own again.
func (m *Memberships) replaceStandIns(place placement) {
	if place == alone {
		return
	}
	for group, one := range m.joined {
		stand, is := one.hold.(standIn)
		if !is {
			continue
		}
		address, err := m.addresses.join(group)
		if err != nil {
			m.log.Debug("group stays joined by a socket", "group", group, "interface", m.ifname, "reason", err)
			one.hold = stand.hold
			continue
		}
		one.hold = address
		m.complain(group, stand.release())
	}
}

// holds says whether some group is held in a way.
func (m *Memberships) holds(way func(hold) bool) bool {
	for _, one := range m.joined {
		if way(one.hold) {
			return true
		}
	}
	return false
}

func isAddress(h hold) bool {
	_, is := h.(addressHold)
	return is
}

func isLost(h hold) bool {
	_, is := h.(lost)
	return is
}

// patience with those who remove an address of ours again and again, such as a network
// manager: after maxRestores within restorePeriod it is left to them, and a socket joins.
type patience struct {
	since    time.Time
	restores int
}

const (
	maxRestores   = 10
	restorePeriod = 10 * time.Second
)

// errRemoved says why a group is joined by a socket from then on.
var errRemoved = errors.New("its address is removed again and again by somebody else")

// isUp counts one more, and says whether it is one too many.
func (p *patience) isUp(now time.Time) bool {
	if now.Sub(p.since) > restorePeriod {
		*p = patience{since: now}
	}
	p.restores++
	return p.restores > maxRestores
}
