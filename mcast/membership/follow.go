// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"errors"
	"time"

	"github.com/roced/roced/internal/host"
)

// keepUp repairs changes by other programs, until Close.
func (m *Memberships) keepUp() {
	defer close(m.followed)
	retry, failures := time.NewTimer(0), 0
	retry.Stop()
	for {
		var c changes
		select {
		case <-m.stop:
			return
		case <-m.changes.Ready():
			c = m.changes.Take()
		case <-retry.C:
			c = everything()
		}
		goOn := host.Pace(m.stop, func() {
			if m.process(c) {
				retry.Reset(host.RetryPauses[min(failures, len(host.RetryPauses)-1)])
				failures++
			} else if c.port {
				failures = 0
				retry.Stop()
			}
		})
		if !goOn {
			return
		}
	}
}

// process repairs changes, and reports whether to retry later.
func (m *Memberships) process(c changes) (again bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		return false
	}
	if m.lagging {
		c = everything()
	}
	err := m.repair(c)
	switch was := m.lagging; {
	case m.ended != nil:
		return false
	case err != nil && !was:
		m.log.Warn("cannot read the state of the interface; retrying; its groups are not repaired until then", "interface", m.ifname, "error", err)
	case err == nil && was:
		m.log.Info("the state of the interface can be read again", "interface", m.ifname)
	}
	m.lagging = err != nil
	return err != nil || m.waitsForMore()
}

// repair restores the joined groups on the host, for the parts of the state in c. If the state cannot be
// read, it changes nothing and returns an error. The caller holds m.mu.
func (m *Memberships) repair(c changes) error {
	if c.port {
		s, err := m.observe()
		if err == nil && m.moveBehind(placementOf(s.addresses)) {
			s, err = m.observe() // moveBehind has changed the addresses
		}
		switch {
		case errors.Is(err, host.ErrNoInterface):
			m.noteGone()
			return nil
		case err != nil:
			return err
		}
		m.reconcile(s)
	}
	return m.dropRoutes(c)
}

// dropRoutes removes local routes of our addresses that exist again.
func (m *Memberships) dropRoutes(c changes) error {
	if c.allRoutes && m.holds(isAddress) {
		list, err := m.addresses.queries.LocalRoutes()
		if err != nil {
			return err
		}
		c.routes = map[host.LocalRoute]struct{}{}
		for _, route := range list {
			c.routes[route] = struct{}{}
		}
	}
	for route := range c.routes {
		if one, ok := m.joined[route.Dest]; ok && isAddress(one.hold) {
			m.logFailure(route.Dest, m.addresses.dropRoute(route.Dest, route.Table))
		}
	}
	return nil
}
