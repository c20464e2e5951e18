// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"

	"github.com/roced/roced/datapath/link"
	"github.com/roced/roced/verbs"
)

// countWorkers determines the number of workers of the card: each needs a receive and a send queue.
func (b *builder) countWorkers() {
	asked := max(b.config.Workers, 1)
	b.workers = min(asked, b.queues.count, b.queues.sends)
	if b.queues.guessed { // through an unused queue nothing would leave, without an error
		b.workers = 1
	}
	if b.workers == asked {
		return
	}
	log := b.config.Log.With("device", b.name, "asked", asked, "workers", b.workers)
	if b.queues.guessed {
		log.Warn("the card has one worker, since the interface's driver does not report the number of queues in use")
		return
	}
	name := b.base.Attrs().Name
	log.Warn("the card has fewer workers than asked for: each needs a queue of the interface to receive and to send; open it again with more",
		"receive_queues", b.queues.count, "send_queues", b.queues.sends, "see", "ethtool -l "+name)
}

// links returns the links of the workers, with the sockets of their queues.
func (b *builder) links() (list []*link.XDP) {
	for first := range b.workers {
		own := b.sockets[first : first+1 : first+1]
		for queue := first + b.workers; queue < len(b.sockets); queue += b.workers {
			own = append(own, b.sockets[queue])
		}
		list = append(list, link.NewXDP(own, b.packets))
	}
	return list
}

// linkOf returns the link that has the socket of a queue.
func (s *sockets) linkOf(queue int) *link.XDP { return s.links[queue%len(s.links)] }

// checkSending returns an error if a worker's queue is not a send queue: nothing would leave, without an error.
func (s *sockets) checkSending(queues int) error {
	if need := min(len(s.links), len(s.queues)); queues < need {
		return fmt.Errorf("%w: %s sends through %d queues, and the card's workers through %d; ethtool -L changes it", verbs.ErrUnsupported, s.plan.name, queues, need)
	}
	return nil
}

// sendApart makes the first worker's link send for workers whose queues were removed. Their received packets are handed
// over.
func (s *sockets) sendApart() {
	for queue := len(s.queues); queue < len(s.links); queue++ {
		l := s.links[queue]
		if l.IsApart() {
			continue
		}
		s.engine.Do(func() { l.SendApart(s.engine.Relay()) })
		s.log.Warn("a worker has no queue any more; the first worker sends for it", "device", s.plan.name,
			"worker", queue+1, "workers", len(s.links), "queues", len(s.queues))
	}
}

// endApart ensures order when a queue gets a link again: it waits for the frames that its link had passed to the first
// link.
func (s *sockets) endApart(queue int) {
	l := s.linkOf(queue)
	if queue >= len(s.links) || !l.IsApart() {
		return
	}
	last, all := uint64(0), false
	s.engine.Until(func() bool {
		if !l.EndApart() {
			return false
		}
		given, done := s.engine.Relayed()
		if !all {
			last, all = given, true // frames that other links pass later are behind
		}
		return done >= last
	}, drainTimeout)
}
