// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
)

// Limits are the limits of a user in all connections together, and of all users. 0 means only the card's limits.
type Limits struct {
	Connections int
	hca.Limits
	All quota.PoolLimits
	// Container is the limit for each container's socket, which counts as one user; nil is the same as for users. Its All
	// is not used.
	Container *Limits
}

// of returns the limits of a user or of a container's socket.
func (l *Limits) of(h Holder) *Limits {
	if h.Container != "" && l.Container != nil {
		return l.Container
	}
	return l
}

// Users are the accounts of all users of a service. An account exists while its user has connections, or is charged for
// something that has not been released yet.
type Users struct {
	owners   owners
	rate     connectRate
	blocking blocking
	pool     *quota.Pool // of all users

	mu       sync.Mutex
	limits   Limits
	accounts map[Holder]*account
}

// account contains the resources of a user in all connections.
type account struct {
	name        string
	quota       *quota.Quota
	connections int
	refused     int  // sockets that are not served and not closed yet
	leaving     bool // it has no connections, and is removed later
}

// NewUsers returns accounts under limits. subUIDs is a file such as /etc/subuid, which assigns further uids to users;
// empty for none.
func NewUsers(limits Limits, subUIDs string) *Users {
	return &Users{owners: owners{path: subUIDs}, pool: quota.NewPool(limits.All), limits: limits, accounts: map[Holder]*account{}}
}

// Identify returns the peer of a socket that was accepted for a container; the name is empty for the service's own socket.
func (u *Users) Identify(socket *net.UnixConn, container string, now time.Time) (*Peer, error) {
	p, err := identify(socket)
	if err != nil {
		return nil, err
	}
	p.Owner, p.Container = u.owners.of(p.UID, now), container
	return p, nil
}

// Allow counts a connection of a user. It returns an error if the user connects too often.
func (u *Users) Allow(h Holder, now time.Time) error { return u.rate.allow(h, now) }

// Enter charges a connection to a user, until its place is released. A connection counts before its first message, since
// it occupies descriptors from then on.
func (u *Users) Enter(h Holder) (*Place, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a, limits := u.account(h), u.limits.of(h)
	if limit := limits.Connections; limit > 0 && a.connections >= limit {
		return nil, fmt.Errorf("%w: %s has %d connections, and may have %d; close some", verbs.ErrLimit, a.name, a.connections, limit)
	}
	if err := a.quota.TakeDescriptors(ConnectionDescriptors); err != nil {
		u.forget(h, a)
		return nil, err
	}
	a.connections++
	return newPlace(u, h, a.quota), nil
}

// ConnectionDescriptors is the number of descriptors of a connection: its socket, its signals, one to wait for room in
// these, and its arena.
const ConnectionDescriptors = 5

// account returns the account of a user, a new one for a new user. The caller holds mu.
func (u *Users) account(h Holder) *account {
	a := u.accounts[h]
	if a == nil {
		name := h.String()
		a = &account{name: name, quota: quota.New(name, u.limits.of(h).Limits, u.pool)}
		u.accounts[h] = a
	}
	return a
}

// forget removes the account of a user without connections. The caller holds mu. Packets that wait for neighbours outlive
// their session by some seconds; until then their user is charged for the neighbours, also if it connects again.
func (u *Users) forget(h Holder, a *account) {
	decreased := a.quota.Decreased()
	switch {
	case a.connections > 0 || a.refused > 0 || a.leaving:
	case a.quota.Unresolved() == 0:
		delete(u.accounts, h)
	default:
		a.leaving = true
		go func() {
			<-decreased
			u.mu.Lock()
			defer u.mu.Unlock()
			a.leaving = false
			u.forget(h, a)
		}()
	}
}

// leave ends the charge of a connection.
func (u *Users) leave(h Holder) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.accounts[h]
	a.quota.GiveDescriptors(ConnectionDescriptors)
	a.connections--
	u.forget(h, a)
}

// SetLimits changes the limits. What users have already stays, also above the new limits.
func (u *Users) SetLimits(limits Limits) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limits = limits
	u.pool.SetLimits(limits.All)
	for h, a := range u.accounts {
		a.quota.SetLimits(limits.of(h).Limits)
	}
}

// Lower lowers the limits in a device's attributes to those of a user.
func (u *Users) Lower(h Holder, a *verbs.DeviceAttr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.limits.of(h)
	for _, one := range []struct {
		most  *int
		limit int
	}{
		{&a.MaxPD, l.PDs}, {&a.MaxMR, l.MRs}, {&a.MaxCQ, l.CQs}, {&a.MaxQP, l.QPs}, {&a.MaxAH, l.AHs}, {&a.MaxSRQ, l.SRQs},
		{&a.MaxTotalMcastQPAttach, l.Attachments},
	} {
		if one.limit > 0 {
			*one.most = min(*one.most, one.limit)
		}
	}
}

// User contains the resources of a user in all connections, including those of further uids.
type User struct {
	UID  uint32
	Used Limits
}

// List returns the users that have connections, ordered by uid, without those of containers' sockets.
func (u *Users) List() (list []User) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for h, a := range u.accounts {
		if h.Container != "" || a.connections == 0 {
			continue
		}
		list = append(list, User{h.UID, Limits{Connections: a.connections, Limits: a.quota.Used()}})
	}
	slices.SortFunc(list, func(a, b User) int { return cmp.Compare(a.UID, b.UID) })
	return list
}

// Refused returns the number of connections that were closed unread, since their users connect too often.
func (u *Users) Refused() uint64 {
	u.rate.mu.Lock()
	defer u.rate.mu.Unlock()
	return u.rate.refused
}
