// SPDX-License-Identifier: Apache-2.0

package paths

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/hca/quota"
)

// hop is a neighbour that is the next hop of paths.
type hop struct {
	address  netip.Addr
	status   network.Neighbour
	paths    map[*Path]struct{}
	settled  chan struct{}        // closed when it has responded, or failed
	answered bool                 // its MAC has been known at some time
	payers   map[*quota.Quota]int // with the number of their paths over it
	kept     *quota.Neighbours    // the table's
}

// unanswered reports whether the neighbour has been queried and has not responded yet.
func (h *hop) unanswered() bool { return !h.status.Known && !h.status.Failed }

// obtainHop returns the hop of an address, or creates one and queries the neighbour. If a place was reserved for the
// user, the caller returns it when the user pays for the hop.
func (t *Table) obtainHop(address netip.Addr, user *quota.Quota) (h *hop, reserved bool, err error) {
	if h := t.hops[address]; h != nil {
		reserved, err := t.reserve(h, user)
		return h, reserved, err
	}
	status, err := t.Host.Neighbour(address)
	if err != nil {
		return nil, false, err
	}
	h = &hop{address: address, answered: status.Known, kept: t.Kept, paths: map[*Path]struct{}{}, payers: map[*quota.Quota]int{}, settled: make(chan struct{})}
	if reserved, err = t.reserve(h, user); err != nil {
		return nil, false, err
	}
	if err = t.Kept.Take(address.Is6(), h.entries(), user); err == nil {
		if err = t.askFor(h); err == nil {
			t.hops[address] = h
			return h, reserved, nil
		}
		t.Host.Release(address)
		t.Kept.Give(address.Is6(), h.entries())
	}
	giveBack(user, reserved)
	return nil, false, err
}

// askFor makes the kernel query a neighbour, and reads the kernel's current entry for it.
func (t *Table) askFor(h *hop) error {
	if err := t.Host.Hold(h.address); err != nil {
		return err
	}
	status, err := t.Host.Neighbour(h.address)
	if err != nil {
		return err
	}
	t.locked(func() { h.setStatus(status) })
	return nil
}

// setStatus stores the host's entry for a hop, and wakes its waiters. While the neighbour is queried again, its old MAC
// stays in use.
func (h *hop) setStatus(status network.Neighbour) {
	was := h.unanswered()
	if h.status.Known && !status.Known && !status.Failed {
		status.MAC, status.Known = h.status.MAC, true
	}
	h.status = status
	if status.Known {
		h.answer()
	}
	switch now := h.unanswered(); {
	case was && !now:
		close(h.settled)
	case now && !was:
		h.settled = make(chan struct{})
	}
}

// dropHop removes a hop that no path uses.
func (t *Table) dropHop(h *hop) {
	if h != nil && len(h.paths) == 0 {
		delete(t.hops, h.address)
		t.Host.Release(h.address)
		t.Kept.Give(h.address.Is6(), h.entries())
	}
}

// pathsOver returns the paths that use hops.
func pathsOver(hops ...*hop) (all []*Path) {
	for _, h := range hops {
		if h != nil {
			all = slices.AppendSeq(all, maps.Keys(h.paths))
		}
	}
	return all
}

// NeighbourTimeout is the maximum time for which Await waits for a neighbour. The kernel sends three queries, a second
// apart.
const NeighbourTimeout = 4 * time.Second

// User uses paths, and waits for them: a session.
type User interface {
	Payer() *quota.Quota   // pays for next hops; nil for a program in this process
	Done() <-chan struct{} // closed when it has ended
	// Err returns verbs.ErrClosed after the user's end, and the cause after a failure.
	Err() error
}

// Await waits until it is known whether packets can be sent on a path. It returns verbs.ErrUnreachable if there is no
// route or the neighbour does not respond, and the user's error if the user ends.
func (t *Table) Await(ctx context.Context, p *Path, user User) error {
	timeout := time.NewTimer(NeighbourTimeout)
	defer timeout.Stop()
	for expired := false; ; {
		h, settled, why := p.wait()
		switch ended := user.Err(); {
		case ended != nil:
			return ended
		case h.Known || settled == nil:
			return why
		case h.Failed || expired:
			return fmt.Errorf("%w: %v does not answer on %s%s; is it up, and in the same VLAN?",
				verbs.ErrUnreachable, h.address, t.Name(), onBehalf(h.address, p.ends.Dest.Addr()))
		}
		select {
		case <-settled:
		case <-timeout.C:
			expired = true
		case <-user.Done():
		case <-ctx.Done():
			return fmt.Errorf("%w: %v has not answered yet on %s: %w", verbs.ErrUnreachable, h.address, t.Name(), ctx.Err())
		}
	}
}

// awaited is a next hop in the view of a waiter.
type awaited struct {
	network.Neighbour
	address netip.Addr
}

// wait returns the next hop to wait for, or nil.
func (p *Path) wait() (h awaited, settled chan struct{}, why error) {
	p.table.mu.Lock()
	defer p.table.mu.Unlock()
	if p.hop == nil {
		return awaited{}, nil, p.why
	}
	return awaited{p.hop.status, p.hop.address}, p.hop.settled, p.why
}

func onBehalf(hop, dest netip.Addr) string {
	if hop == dest {
		return ""
	}
	return fmt.Sprintf(", the next hop to %v", dest)
}
