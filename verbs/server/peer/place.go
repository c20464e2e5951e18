// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"sync/atomic"

	"github.com/roced/roced/verbs/hca/quota"
)

// Place is one connection among those of its user. The connection holds it, and so does each blocking call that
// the connection has caused. While it is held, the connection is charged to its user.
type Place struct {
	users *Users
	of    Holder
	quota *quota.Quota
	holds atomic.Int32
	left  chan struct{}
}

func newPlace(u *Users, of Holder, q *quota.Quota) *Place {
	p := &Place{users: u, of: of, quota: q, left: make(chan struct{})}
	p.holds.Store(1)
	return p
}

// Quota returns the account of the user.
func (p *Place) Quota() *quota.Quota { return p.quota }

// Block runs a system call that the client can make block in a thread of the user (Users.Run). The call holds the place until it has
// returned.
func (p *Place) Block(call func()) {
	p.holds.Add(1)
	p.users.Run(p.of, func() {
		call()
		p.Release()
	})
}

// Release ends the connection's hold. The last hold that ends releases the place.
func (p *Place) Release() {
	if p.holds.Add(-1) == 0 {
		p.users.leave(p.of)
		close(p.left)
	}
}

// Left returns a channel that is closed when the place has been released.
func (p *Place) Left() <-chan struct{} { return p.left }
