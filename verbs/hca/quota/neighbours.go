// SPDX-License-Identifier: Apache-2.0

//go:build linux

package quota

import (
	"fmt"
	"sync"

	"github.com/roced/roced/verbs"
)

// MostUnresolved is the maximum number of next hops that an owner can have on all cards while they have not responded.
const MostUnresolved = 64

// unresolved counts an owner's next hops.
type unresolved struct {
	all  uint64 // including those that have responded
	now  int
	room chan struct{} // closed when now decreases; nil if no caller waits
}

// ErrUnresolved is an ErrLimit: the owner has MostUnresolved next hops that have not responded.
var ErrUnresolved = fmt.Errorf("%w: neighbours that have not answered", verbs.ErrLimit)

// TakeUnresolved counts a next hop that has not responded. It returns ErrUnresolved if the owner has MostUnresolved.
func (q *Quota) TakeUnresolved() error {
	if q == nil {
		return nil // a program in this process
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hops.now >= MostUnresolved {
		return fmt.Errorf("%w: %s has %d, in all its programs, and the maximum is %d; check their addresses, or try again when some have answered",
			ErrUnresolved, q.owner, q.hops.now, MostUnresolved)
	}
	q.hops.now++
	return nil
}

// CountNeighbours changes the owner's numbers of next hops and of those that have not responded. It has no limit.
func (q *Quota) CountNeighbours(all, unresolved int) {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hops.all += uint64(all)
	q.hops.now += unresolved
	if unresolved < 0 && q.hops.room != nil {
		close(q.hops.room)
		q.hops.room = nil
	}
}

// Unresolved returns the owner's number of next hops that have not responded.
func (q *Quota) Unresolved() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.hops.now
}

// Decreased returns a channel that is closed when that number decreases; nil if it has no limit.
func (q *Quota) Decreased() <-chan struct{} {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hops.room == nil {
		q.hops.room = make(chan struct{})
	}
	return q.hops.room
}

// Neighbours counts the kernel's entries for next hops of the cards of a process, for IPv4 and for IPv6. All network
// namespaces of a machine share the kernel's tables.
type Neighbours struct {
	most func(v6 bool) uint64

	mu   sync.Mutex
	used map[bool]uint64
}

// NewNeighbours returns a count of 0. Its limit is queried for each next hop.
func NewNeighbours(most func(v6 bool) uint64) *Neighbours {
	return &Neighbours{most: most, used: map[bool]uint64{}}
}

// Take acquires the entries of a next hop for an owner. It returns ErrLimit if too few are left. A nil Neighbours has
// no limit.
func (n *Neighbours) Take(v6 bool, entries uint64, q *Quota) error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	owner, own := "this process", uint64(0)
	if q != nil {
		q.mu.Lock()
		owner, own = q.owner, q.hops.all
		q.mu.Unlock()
	}
	shared := Shared{Noun: "entries for neighbours", Used: n.used[v6], Most: n.most(v6)}
	if err := shared.admit(owner, own, entries); err != nil {
		family := map[bool]string{false: "ipv4", true: "ipv6"}[v6]
		return fmt.Errorf("%w, or increase net.%s.neigh.default.gc_thresh3 of the machine, half of which is for RDMA", err, family)
	}
	n.used[v6] += entries
	return nil
}

// Give returns entries.
func (n *Neighbours) Give(v6 bool, entries uint64) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used[v6] -= entries
}
