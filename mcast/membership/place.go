// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/internal/host"
)

// placement is the position of our addresses among those of the interface. NAT's REDIRECT, SIOCGIFADDR, hostname -I,
// netconsole and scripts treat the first address as the interface's own.
type placement int

const (
	behind  placement = iota // the first address is the host's own
	inFront                  // the first address is ours: the host's own was removed and added again
	alone                    // the host has no own address
)

// placementOf finds the placement in a list of addresses, in the kernel's order.
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

// moveBehind moves our addresses behind the host's own, and reports whether it has changed addresses. Meanwhile a
// socket holds each membership, so that the kernel sends no leave.
func (m *Memberships) moveBehind(place placement) (done bool) {
	if place == behind {
		return false
	}
	for group, one := range m.joined {
		if ours, is := one.hold.(addressHold); is {
			m.logFailure(group, m.moveOneBehind(one, ours, place == alone))
			done = true
		}
	}
	return done
}

// moveOneBehind removes an address of ours and adds it again, which sorts it last. If alone, it keeps the socket
// instead of adding the address.
func (m *Memberships) moveOneBehind(one *membership, ours addressHold, alone bool) error {
	stand, err := m.standIn(ours.group)
	if err != nil {
		return fmt.Errorf("its address may be treated as the interface's own: %w", err)
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

// standIn is a socket that replaces an address while the interface has no own IPv4 address.
type standIn struct{ hold }

func (m *Memberships) standIn(group netip.Addr) (hold, error) {
	socket, err := joinBySocket(m.namespace, m.index, group)
	if err != nil {
		return nil, err
	}
	return standIn{socket}, nil
}

// replaceStandIns replaces the sockets by addresses when the interface has an own address again.
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
		m.logFailure(group, stand.release())
	}
}

// holds reports whether any group has a hold for which way returns true.
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

// restoreCount counts restores of an address of ours. Another program, such as a network manager, may remove it
// repeatedly: after maxRestores within restorePeriod a socket is used instead.
type restoreCount struct {
	since    time.Time
	restores int
}

const (
	maxRestores   = 10
	restorePeriod = 10 * time.Second
)

// errRemoved is the logged reason for using a socket instead of an address.
var errRemoved = errors.New("another program removes its address repeatedly")

// exceeded counts a restore, and reports whether the limit is exceeded.
func (p *restoreCount) exceeded(now time.Time) bool {
	if now.Sub(p.since) > restorePeriod {
		*p = restoreCount{since: now}
	}
	p.restores++
	return p.restores > maxRestores
}
