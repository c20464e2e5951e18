//go:build linux

package hca

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/roced/roced/verbs"
)

// hop is a neighbour that is the next hop of paths.
type hop struct {
	address netip.Addr
	status  hopStatus
	paths   map[*path]struct{}
	settled chan struct{} // closed when it has answered, or failed
}

// unanswered says that the neighbour has been asked and has not answered yet.
func (h *hop) unanswered() bool { return !h.status.known && !h.status.failed }

// obtainHop finds the hop of an address, or makes one and asks the neighbour. The caller holds
// card.asking.
func (card *Card) obtainHop(address netip.Addr) (*hop, error) {
	if h := card.hops[address]; h != nil {
		return h, nil
	}
	h := &hop{address: address, paths: map[*path]struct{}{}, settled: make(chan struct{})}
	if err := card.askFor(h); err != nil {
		return nil, err
	}
	card.hops[address] = h
	return h, nil
}

// askFor has the kernel ask a neighbour, and reads what the kernel knows of it already.
func (card *Card) askFor(h *hop) error {
	if err := card.host.hold(h.address); err != nil {
		return err
	}
	status, err := card.host.neighbour(h.address)
	if err != nil {
		return err
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	h.setStatus(status)
	return nil
}

// setStatus stores what the host knows of a hop, and wakes those that wait for it. While the
// neighbour is asked again, its old MAC stays in use. The caller holds card.mu.
func (h *hop) setStatus(status hopStatus) {
	was := h.unanswered()
	if h.status.known && !status.known && !status.failed {
		status.mac, status.known = h.status.mac, true
	}
	h.status = status
	switch now := h.unanswered(); {
	case was && !now:
		close(h.settled)
	case now && !was:
		h.settled = make(chan struct{})
	}
}

// dropHop forgets a hop that no path uses. The caller holds card.asking.
func (card *Card) dropHop(h *hop) {
	if h != nil && len(h.paths) == 0 {
		delete(card.hops, h.address)
		card.host.release(h.address)
	}
}

// pathsOver lists the paths that use hops.
func pathsOver(hops ...*hop) (all []*path) {
	for _, h := range hops {
		if h != nil {
			all = slices.AppendSeq(all, maps.Keys(h.paths))
		}
	}
	return all
}

// neighbourTimeout is how long CreateAH waits for a neighbour at most. The kernel asks three times,
// a second apart.
const neighbourTimeout = 4 * time.Second

// awaitPath waits until it is known whether packets can be sent on a path.
func (s *Session) awaitPath(ctx context.Context, p *path) error {
	card := s.card
	timeout := time.NewTimer(neighbourTimeout)
	defer timeout.Stop()
	for expired := false; ; {
		card.mu.Lock()
		h, why := p.hop, p.why
		var status hopStatus
		var settled chan struct{}
		if h != nil {
			status, settled = h.status, h.settled
		}
		card.mu.Unlock()
		switch ended := s.Err(); {
		case ended != nil:
			return ended
		case h == nil || status.known:
			return why
		case status.failed || expired:
			return fmt.Errorf("%w: %v does not answer on %s%s; is it up, and in the same VLAN?",
				verbs.ErrUnreachable, h.address, card.Name(), onBehalf(h.address, p.ends.dest.Addr()))
		}
		select {
		case <-settled:
		case <-timeout.C:
			expired = true
		case <-s.done:
		case <-ctx.Done():
			return fmt.Errorf("%w: %v has not answered yet on %s: %w", verbs.ErrUnreachable, h.address, card.Name(), ctx.Err())
		}
	}
}

func onBehalf(hop, dest netip.Addr) string {
	if hop == dest {
		return ""
	}
	return fmt.Sprintf(", the next hop to %v", dest)
}
