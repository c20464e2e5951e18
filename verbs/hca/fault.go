//go:build linux

package hca

import (
	"errors"
	"slices"
	"time"

	"github.com/roced/roced/datapath"
	"github.com/roced/roced/internal/fault"
)

// A panic is contained where the work of one session is in hand: in a round of the engine, in a command (by
// who carries it out, see Session.Faulted), in the connection manager. That session ends as if its device had
// failed; the card and its other sessions go on.

// noteFault is called by the engine, under its lease.
func (card *Card) noteFault(f datapath.Fault) { go fault.Contain(func() { card.faulted(f) }) }

// faulted ends the session in whose work the engine has found a mistake.
func (card *Card) faulted(f datapath.Fault) {
	s, found := card.sessionOf(f.Session), &fault.Fault{Cause: f.Cause, Stack: f.Stack}
	switch {
	case f.Ends:
		card.logFault(found, "device", card.Name())
		card.fail(found)
	case s == nil:
		card.logFault(found, "device", card.Name())
		card.failTargets(f.Session)
	case s.lacks(found):
		card.logFault(ErrPagesGone, "device", card.Name())
		s.fail(ErrPagesGone)
	default:
		s.Faulted(found)
	}
}

// ErrPagesGone is why a session has ended whose program has taken pages out of memory that it had registered
// (Session.RegMapped): the card has met the hole.
var ErrPagesGone = errors.New("the program has taken pages out of memory that it had registered")

// lacks says whether a fault is that memory is not there that was mapped for a region of the session's.
func (s *Session) lacks(f *fault.Fault) (is bool) {
	fault, is := f.Cause.(interface{ Addr() uintptr }) // see debug.SetPanicOnFault
	if !is {
		return false
	}
	s.card.locked(func() {
		is = slices.ContainsFunc(s.keys.All(), func(k *keyed) bool { return k.region != nil && k.region.holds(fault.Addr()) })
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

// Faulted ends the session because of a mistake of roced's own in its work. The caller did that work, and
// contained the panic, which is the cause. Outstanding requests are flushed, the program gets DEVICE_FATAL, and
// commands fail with verbs.ErrDeviceFatal. The mistake is counted (Statistics.Faults) and logged with its
// stack. The session still has to be closed.
func (s *Session) Faulted(cause error) {
	s.card.faults.Add(1)
	s.card.logFault(cause, "device", s.card.Name(), "internal", s.internal)
	if s.internal {
		s.card.restore(s)
		return
	}
	s.fail(cause)
}

// restore has the card's own session go on: the manager makes another queue pair.
func (card *Card) restore(s *Session) {
	card.manager.Mend(func() { s.entry.Engine().Do(func() { s.entry.Engine().Restore(s.entry) }) })
}

// faultLogPause is the least time between two reports of mistakes: who can provoke one is not to fill the log.
// All are counted.
const faultLogPause = time.Second

func (card *Card) logFault(cause error, about ...any) {
	now := time.Now().UnixNano()
	last := card.faultLogged.Load()
	if now-last < int64(faultLogPause) || !card.faultLogged.CompareAndSwap(last, now) {
		return
	}
	if f := (*fault.Fault)(nil); errors.As(cause, &f) {
		about = append(about, "stack", string(f.Stack))
	}
	if errors.Is(cause, ErrPagesGone) {
		card.log.Warn("a program's session has ended", append(about, "error", cause)...)
		return
	}
	card.log.Error("a mistake of roced's own was contained", append(about, "error", cause)...)
}

// locked runs a function under the card's lock, which is free afterwards whatever the function does.
func (card *Card) locked(do func()) {
	card.mu.Lock()
	defer card.mu.Unlock()
	do()
}
