// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"context"
	"errors"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/verbs/hca/quota"
)

// A next hop of a NIC is an entry in the kernel's table of neighbours, which the whole machine shares. The users of its
// paths pay for it: all of them while it has not answered, so that no user can fill the table with silent addresses.
// The last user of a path pays until the path is freed.

// reserve admits a user to a hop. If the hop has not answered, a place of the user's is reserved until the user pays.
func (t *Table) reserve(h *hop, user *quota.Quota) (reserved bool, err error) {
	if _, pays := h.payers[user]; pays || h.answered || t.Kept == nil {
		return false, nil
	}
	if err := user.TakeUnresolved(); err != nil {
		return false, err
	}
	return true, nil
}

// giveBack ends a reservation.
func giveBack(user *quota.Quota, reserved bool) {
	if reserved {
		user.CountNeighbours(0, -1)
	}
}

// pay charges a user for a hop, for one more path over it.
func (h *hop) pay(user *quota.Quota) {
	if h.payers[user]++; h.payers[user] == 1 {
		user.CountNeighbours(1, h.unresolved())
	}
}

// refund ends the charge for one path.
func (h *hop) refund(user *quota.Quota) {
	if h.payers[user]--; h.payers[user] == 0 {
		delete(h.payers, user)
		user.CountNeighbours(-1, -h.unresolved())
	}
}

// answer records that the hop has responded.
func (h *hop) answer() {
	if h.answered {
		return
	}
	for user := range h.payers {
		user.CountNeighbours(0, -1)
	}
	before := h.entries()
	h.answered = true
	h.kept.Give(h.address.Is6(), before-h.entries())
}

// entries returns the number of the kernel's entries for the hop. To query an IPv6 neighbour the kernel creates a
// second one, for the neighbour's solicited-node group.
func (h *hop) entries() uint64 {
	if h.address.Is6() && !h.answered {
		return 2
	}
	return 1
}

// unresolved returns 1 if the hop has not responded yet, else 0.
func (h *hop) unresolved() int {
	if h.answered {
		return 0
	}
	return 1
}

// addPayer adds a use of the path by a user.
func (p *Path) addPayer(user *quota.Quota) {
	if _, pays := p.payers[user]; !pays && p.hop != nil {
		p.hop.pay(user)
	}
	p.payers[user]++
}

// dropPayers ends the charges of users without a use.
func (p *Path) dropPayers() {
	for user, uses := range p.payers {
		if uses > 0 {
			continue
		}
		delete(p.payers, user)
		if p.hop != nil {
			p.hop.refund(user)
		}
	}
}

// TakeInTurn is Take for a user that waits: while too many of its hops have not responded, it waits until one has
// responded or failed, for at most NeighbourTimeout.
func (t *Table) TakeInTurn(ctx context.Context, ends Ends, user User) (*Path, error) {
	timeout := time.NewTimer(NeighbourTimeout)
	defer timeout.Stop()
	for {
		decreased := user.Payer().Decreased()
		p, err := t.Take(ends, user)
		if !errors.Is(err, quota.ErrUnresolved) {
			return p, err
		}
		select {
		case <-decreased:
		case <-timeout.C:
			return nil, err
		case <-user.Done():
			return nil, user.Err()
		case <-ctx.Done():
			return nil, err
		}
	}
}

// makeRoom frees the path that has been without users for longest, after the error err: a lingering path, or, if the
// user has too many hops without a response, one that the user pays for. Packets that wait on the path are dropped. It
// returns false if no such path exists.
func (t *Table) makeRoom(user *quota.Quota, err error) (freed bool) {
	frees := func(p *Path) bool { return p.lingers }
	if errors.Is(err, quota.ErrUnresolved) {
		frees = func(p *Path) bool { _, pays := p.payers[user]; return pays && p.hop != nil && !p.hop.answered }
	}
	var unused *hop
	t.locked(func() {
		var idlest *Path
		for _, p := range t.paths {
			if p.users == 0 && frees(p) && (idlest == nil || p.left.Before(idlest.left)) {
				idlest = p
			}
		}
		if freed = idlest != nil; freed {
			if idlest.lingers {
				t.lingering--
			}
			t.Engine.Do(func() { t.Engine.SetPath(idlest.entry, datapath.PathAttr{State: datapath.PathUnreachable}) })
			unused = t.free(idlest)
		}
	})
	t.dropHop(unused)
	return freed
}
