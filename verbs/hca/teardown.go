// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"errors"
	"slices"
	"time"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/internal/futex"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"
)

// The end of cards and sessions. Both may fail first (failure.go); their state is in life.go.

// closeTimeout is the maximum time for which Close waits for posted requests to be sent. The kernel repeats a query of a
// neighbour after a second (arp(7), retrans_time_ms).
const closeTimeout = 1500 * time.Millisecond

// Close stops the card and frees all resources of it and its sessions. Posted requests are sent first, for up to a
// second; Close does not wait for those that cannot be sent (the link is down, the queue pair is in SQD). From then on
// commands return verbs.ErrClosed; Statistics still works. Closing again has no effect. A failed card must be closed
// too.
func (card *Card) Close() error {
	var programs []*Session
	card.locked(func() { programs = slices.Clone(card.sessions) })
	for _, s := range programs {
		s.ids.Quit() // while commands and packets still work: peers are notified
	}
	card.manager.Flush()
	sessions, first := card.end() // from here on commands are refused, and waiting goroutines are woken
	if !first {
		<-card.life.over
		return nil
	}
	defer close(card.life.over)
	card.host.Interrupt() // ends the goroutine in Listen
	for _, s := range sessions {
		s.ids.Shut()
	}
	for _, s := range sessions { // for commands and goroutines in progress, which use the objects that are freed below
		s.ids.Wait()
		s.life.work.Wait()
	}
	card.life.work.Wait()
	card.settle(sessions) // posted requests, which need the paths
	card.paths.Close()    // before the sessions leave theirs, so that no path lingers
	for _, s := range sessions {
		s.free()
	}
	card.mu.Lock()
	defer card.mu.Unlock()
	final, _ := card.readStatistics() // counters that cannot be read stay 0; a closed host cannot be queried
	err := card.engine.Close()        // closes its link, before the host
	ids.LeavePorts(card.host.Namespace())
	err = errors.Join(err, card.host.Close())
	final.Engine = card.engine.Counters() // with the last drops
	card.final = &final
	return err
}

// end refuses further commands of all sessions, and returns the sessions that were open. first is false if it was
// called before.
func (card *Card) end() (sessions []*Session, first bool) {
	card.mu.Lock()
	defer card.mu.Unlock()
	if !card.life.stop() {
		return nil, false
	}
	card.life.release()
	for _, s := range card.allSessions() {
		if s.stop() {
			sessions = append(sessions, s)
		}
	}
	return sessions, true
}

// settle sends posted requests, for up to closeTimeout. Since the follower has ended, settle itself queries the
// neighbours that have not responded yet.
func (card *Card) settle(sessions []*Session) {
	end := time.Now().Add(closeTimeout)
	settle := func() {
		for _, s := range sessions {
			s.engine().Settle(s.entry, time.Until(end))
		}
	}
	settle()
	for held := 1; time.Now().Before(end); time.Sleep(settlePause) {
		if card.engine.Do(func() { held = card.engine.Held() }); held == 0 {
			break
		}
		_ = card.paths.AskHops(false)
	}
	settle()
}

// settlePause is the time between two neighbour queries of settle.
const settlePause = 2 * time.Millisecond

// Close ends the session and frees all its objects, attachments to groups and memberships. Posted requests are sent
// first, as with Card.Close. From then on commands return verbs.ErrClosed. Closing again waits for the first Close, and
// has no other effect.
func (s *Session) Close() error {
	first := false
	s.device.locked(func() {
		if first = s.stop(); first { // from here on commands are refused, and waiting goroutines are woken
			s.device.life.work.Add(1)
		}
	})
	if !first {
		<-s.life.over
		return nil
	}
	defer s.device.life.work.Done()
	s.ids.Shut()
	s.ids.Wait() // for commands and goroutines in progress, which use the objects that are freed below
	s.life.work.Wait()
	s.engine().Settle(s.entry, closeTimeout)
	return s.free()
}

// stop refuses further commands; it returns false if it was called before. The caller holds the card's lock.
func (s *Session) stop() (first bool) {
	if first = s.life.stop(); first {
		s.wakeWaiters()
	}
	return first
}

// wakeWaiters wakes all goroutines and programs whose waits cannot end otherwise. The caller holds the card's lock.
func (s *Session) wakeWaiters() {
	if s.life.release() {
		for _, c := range s.channels.All() {
			c.shut(s.engine())
		}
		s.engine().WakeLeader()
		futex.Wake(s.doorbell.End())
	}
}

// free frees all objects of the session, after its last command has returned. Every end of a session frees its objects
// here. A step that fails or panics does not prevent the later ones.
func (s *Session) free() (failed error) {
	defer close(s.life.over)
	var peers []*ah // peers of XRC targets that are destroyed with the session
	locked := func(step func() error) func() error {
		return func() (err error) {
			s.device.locked(func() { err = step() })
			return err
		}
	}
	s.engine().EndCalls(s.config.Calls)
	for _, step := range []func() error{
		// Ids first: their connections end, and no new ones start.
		s.ids.End,
		// Then the objects that peers can reach, from the outside to the inside, until no round of the engine uses the
		// session.
		locked(func() (err error) {
			s.srqs.withdrawXRC() // before the targets that receive into them
			peers, err = s.qps.closeTargets()
			s.xrcds.leaveAll() // after the targets, which belong to domains
			return err
		}),
		locked(func() error { return errors.Join(s.attachments.detachAll(), s.qps.forget(s.qps.All())) }),
		locked(func() error { return s.card.removeSession(s) }), // after its queue pairs, which use its CQs and regions
		// Then the paths, ports and memberships of the objects, without the card's lock, since the host is queried.
		s.ids.Free,
		func() error { leavePaths(s.qps.All(), s.ahs.All(), peers); return nil },
		s.memberships.leaveAll,
		// Memory and quotas last: no object refers to them any more.
		func() error {
			s.release(s.doorbellMemory)
			for _, free := range []func(){
				s.qps.releaseAll, s.srqs.releaseAll, s.cqs.releaseAll, s.mrs.releaseAll, s.dms.releaseAll,
				s.pds.Close, s.channels.Close, s.cqs.Close, s.mrs.Close, s.dms.Close, s.counters.Close, s.srqs.Close, s.xrcds.Close,
				s.qps.Close, s.ahs.Close, s.memberships.Close,
			} {
				free()
			}
			return nil
		},
	} {
		failed = errors.Join(failed, fault.Call(step))
	}
	return network.HostError(failed)
}

// removeSession removes a session from the card and its engine. The caller holds mu.
func (card *Card) removeSession(gone *Session) error {
	card.sessions = slices.DeleteFunc(card.sessions, func(s *Session) bool { return s == gone })
	card.engine.SetUser(userOf(card.sessions))
	engine := gone.engine()
	engine.Do(func() {
		gone.entry.Remove()
		for _, c := range gone.cqs.All() {
			c.entry.Remove()
		}
	})
	return nil
}

// leavePaths releases the paths of address handles, of connections, and of other peers.
func leavePaths(pairs []*qp, handles, peers []*ah) {
	for _, q := range pairs {
		if q.peer != nil {
			peers = append(peers, q.peer)
		}
	}
	for _, a := range slices.Concat(peers, handles) {
		a.owner.device.paths.Leave(a.path, a.owner)
	}
}
