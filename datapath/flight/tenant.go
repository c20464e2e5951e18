// SPDX-License-Identifier: Apache-2.0

package flight

import (
	"time"

	"github.com/roced/roced/internal/timers"
)

// Tenant is a session (one program): its flows share one part of the card's limit. The zero Tenant is ready to use.
type Tenant struct {
	scheduler *Scheduler
	flows     int         // number of flows in flight
	waits     int         // number of flows that wait in the pools
	known     [kinds]pool // for flows whose peers have responded
	first     [kinds]pool // for the first packets of the other flows
	patience  timers.Timer[*Tenant]
}

// grantBudget is the maximum number of grants that one call of admit makes in a pool.
const grantBudget = 128

// Flows returns the number of flows in flight.
func (t *Tenant) Flows() int { return t.flows }

// Granted returns the number of packets that are granted or in flight.
func (t *Tenant) Granted(k Kind) int { return t.known[k].granted.Packets }

// Waiting returns the number of flows that wait for a grant.
func (t *Tenant) Waiting(k Kind) int { return t.known[k].waiting + t.first[k].waiting }

// serve connects the tenant with the scheduler.
func (t *Tenant) serve(s *Scheduler) {
	if t.scheduler == s {
		return
	}
	t.scheduler, t.patience.Of = s, t
	for k := range kinds {
		t.known[k].kind, t.first[k].kind, t.first[k].first = k, k, true
	}
}

// pools calls do for each pool.
func (t *Tenant) pools(do func(p *pool)) {
	for k := range kinds {
		do(&t.known[k])
		do(&t.first[k])
	}
}

// admit makes grants to waiting flows, as far as there is room.
func (t *Tenant) admit() {
	if t.waits == 0 {
		return
	}
	for k := range kinds {
		t.known[k].admit()
		t.first[k].admit()
	}
}

// schedule sets the timer to the earliest time at which the patience of a pool ends. If that time moves later, the
// timer is corrected when it expires.
func (t *Tenant) schedule() {
	at := t.due()
	if s := t.scheduler; !at.IsZero() && (!t.patience.Runs() || at.Before(t.patience.At())) {
		s.waiting.Set(&t.patience, at)
	}
}

// due returns the earliest time at which the patience of a pool ends; zero if no flow waits.
func (t *Tenant) due() (at time.Time) {
	t.pools(func(p *pool) {
		if due := p.due(t.scheduler.patience()); at.IsZero() || !due.IsZero() && due.Before(at) {
			at = due
		}
	})
	return at
}

// expire restarts the pools whose patience has ended.
func (t *Tenant) expire(now time.Time) {
	t.pools(func(p *pool) {
		if at := p.due(t.scheduler.patience()); !at.IsZero() && !at.After(now) {
			p.restart(now)
		}
	})
	t.schedule()
}

// fly adds more to the number of the tenant's flows in flight.
func (t *Tenant) fly(more int) {
	was := t.flows
	if t.flows += more; was == 0 {
		t.scheduler.noteTenants(1)
	} else if t.flows == 0 {
		t.scheduler.noteTenants(-1)
	}
}
