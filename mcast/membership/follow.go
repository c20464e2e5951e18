package membership

import (
	"errors"
	"time"

	"github.com/roced/roced/internal/host"
)

// News are looked at at once, and what comes next is left to gather: at least quietPause, and as
// long as the look has taken, so that a host where much changes keeps half a processor busy at
// the worst.
const quietPause = time.Millisecond

// retryPauses are after which a look that failed is made again: the last for ever.
var retryPauses = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second}

// keepUp puts right what others change, until Close.
func (m *Memberships) keepUp() {
	defer close(m.followed)
	retry, failures := time.NewTimer(0), 0
	retry.Stop()
	for {
		var c changes
		select {
		case <-m.stop:
			return
		case <-m.changes.ready:
			c = m.changes.take()
		case <-retry.C:
			c = everything()
		}
		began := time.Now()
		if m.look(c) {
			retry.Reset(retryPauses[min(failures, len(retryPauses)-1)])
			failures++
		} else if c.port {
			failures = 0
			retry.Stop()
		}
		select {
		case <-m.stop:
			return
		case <-time.After(max(quietPause, time.Since(began))):
		}
	}
}

// look puts right what has changed, and says whether to look again.
func (m *Memberships) look(c changes) (again bool) {
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
		m.log.Warn("cannot look at what has changed on the interface; groups stay as they are, and it is tried again", "interface", m.ifname, "error", err)
	case err == nil && was:
		m.log.Info("what has changed on the interface is known again", "interface", m.ifname)
	}
	m.lagging = err != nil
	return err != nil || m.waitsForMore()
}

// repair puts right what differs from what is joined. What could not be seen is left as it is, and
// is an error. The caller holds m.mu.
func (m *Memberships) repair(c changes) error {
	if c.port {
		s, err := m.see()
		if err == nil && m.putBehind(placementOf(s.addresses)) {
			s, err = m.see() // its own doing
		}
		switch {
		case errors.Is(err, host.ErrNoInterface):
			m.vanish()
			return nil
		case err != nil:
			return err
		}
		m.putRight(s)
	}
	return m.dropRoutes(c)
}

// dropRoutes removes local routes of addresses of ours that are there again.
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
			m.complain(route.Dest, m.addresses.dropRoute(route.Dest, route.Table))
		}
	}
	return nil
}
