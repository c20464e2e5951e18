// SPDX-License-Identifier: Apache-2.0

//go:build linux

package hca

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/handles"
	"github.com/roced/roced/verbs/provider"
)

// flushTimeout limits the wait for a session's requests to be flushed. Flushing 16384 queue pairs with full queues
// takes some seconds; with a program that keeps posting, it would never end.
const flushTimeout = 10 * time.Second

// fail ends a card that has lost its interface, like a hardware failure. Commands fail from now on. When the
// outstanding requests of a session are flushed, the session receives EventDeviceFatal and its waiting goroutines are
// woken. The program still has to call Close.
func (card *Card) fail(cause error) {
	var flushing sync.WaitGroup
	for _, s := range card.startFailing(cause) {
		flushing.Go(s.reportFatal)
	}
	flushing.Wait()
}

// startFailing changes all queue pairs to ERR and returns the sessions, or nil if the card has failed or was closed
// before.
func (card *Card) startFailing(cause error) []*Session {
	card.mu.Lock()
	defer card.mu.Unlock()
	if !card.life.fail(fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, cause)) {
		return nil
	}
	card.log.Error("device has failed", "device", card.Name(), "error", cause)
	card.life.release()
	down := *card.port.Now()
	down.Up = false
	card.port.Set(&down)
	all := card.allSessions()
	card.engine.Do(func() {
		card.engine.SetLink(false)
		for _, s := range all {
			for _, q := range s.qps.All() {
				q.flush()
			}
		}
	})
	return all
}

// Fail ends the session as if its device had failed, for a cause in its program. The program's requests are flushed, it
// receives EventDeviceFatal, and its commands fail with verbs.ErrDeviceFatal and the cause. The session must still be
// closed.
func (s *Session) Fail(cause error) {
	failure := fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, cause)
	first := false
	s.device.locked(func() {
		if first = s.Err() == nil && s.life.fail(failure); first {
			s.qps.flushEach()
		}
	})
	if first {
		s.reportFatal()
	}
}

// Failure returns the cause of the session's failure, also after Close, or nil if it has not failed.
func (s *Session) Failure() error {
	if failure := s.life.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// flushEach flushes the queue pairs of a session whose work has panicked. The panic may occur again, and then ends the
// flush of one queue pair only. The caller holds the card's lock.
func (t *qps) flushEach() {
	for _, q := range t.All() {
		if q.target != nil && q.target.shared(t.owner) { // other sessions go on using it
			continue
		}
		fault.Contain(func() { q.engine().Do(q.flush) })
	}
}

// reportFatal reports EventDeviceFatal to the program as the last event of the device, after the outstanding requests
// are flushed. A panic in one step does not prevent the others.
func (s *Session) reportFatal() {
	s.engine().Settle(s.entry, flushTimeout)
	fatal := func() { s.events.put(provider.EventReport{Type: verbs.EventDeviceFatal}) }
	locked := func(step func()) func() { return func() { s.device.locked(step) } }
	for _, step := range []func(){
		locked(s.events.putNoted), // events of objects from before the failure
		s.ids.RemoveDevice,
		locked(fatal),
		locked(s.wakeWaiters),
		s.ids.Shut,
	} {
		fault.Contain(step)
	}
}

// A panic is contained where the work of one session is in progress: in a round of the engine, in a command (by the
// caller of Session.Do, see Session.Faulted), and in the connection manager. That session ends as if its device had
// failed; the card and its other sessions continue.

// noteFault is called by the engine, under its lease.
func (card *Card) noteFault(f datapath.Fault) { go fault.Contain(func() { card.faulted(f) }) }

// faulted ends the session in whose work the engine has contained a panic.
func (card *Card) faulted(f datapath.Fault) {
	s, found := card.sessionOf(f.Session), &fault.Fault{Cause: f.Cause, Stack: f.Stack}
	switch {
	case f.Ends:
		card.faults.report(found, "device", card.Name())
		card.fail(found)
	case s == nil:
		card.faults.report(found, "device", card.Name())
		card.locked(func() { failTargets(card.qps, f.Session) })
	case s.mrs.lack(found):
		card.faults.report(ErrPagesGone, "device", card.Name())
		s.Fail(ErrPagesGone)
	default:
		s.Faulted(found)
	}
}

// failTargets records that the engine has stopped the XRC targets of a domain. The caller holds the card's lock.
func failTargets(all *handles.Numbers[qp], of *datapath.Session) {
	for q := range all.All() {
		if q.target == nil || q.entry.Session != of {
			continue
		}
		q.engine().Do(func() {
			if q.state.Swap(uint32(q.entry.State)) != uint32(q.entry.State) {
				q.target.note(notedEvent(verbs.EventQPFatal) | notedMove)
			}
		})
	}
}

// lack reports whether a fault was caused by missing pages of memory that is mapped for a region.
func (t *mrs) lack(f *fault.Fault) (is bool) {
	fault, is := f.Cause.(interface{ Addr() uintptr }) // see debug.SetPanicOnFault
	if !is {
		return false
	}
	t.owner.device.locked(func() {
		is = slices.ContainsFunc(t.All(), func(k *keyed) bool { return k.region != nil && k.region.holds(fault.Addr()) })
	})
	return is
}

func (card *Card) sessionOf(entry *datapath.Session) *Session {
	card.mu.Lock()
	defer card.mu.Unlock()
	for _, s := range card.allSessions() {
		if s.entry == entry {
			return s
		}
	}
	return nil
}

// Faulted ends the session because of a bug of roced in its work. The caller has contained the panic, which is the
// cause. Outstanding requests are flushed, the program receives EventDeviceFatal, and commands fail with
// verbs.ErrDeviceFatal. The panic is counted (Statistics.Faults) and logged with its stack. The session must still be
// closed.
func (s *Session) Faulted(cause error) {
	s.device.faults.add(cause, "device", s.device.port.Name(), "internal", s.internal)
	if !s.internal {
		s.Fail(cause)
		return
	}
	// The card's own session continues: the manager creates another queue pair.
	s.device.manager.Mend(func() { s.engine().Do(func() { s.entry.Restore() }) })
}
