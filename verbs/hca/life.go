//go:build linux

package hca

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// life is the state of a card or a session. It runs; it may fail, and is closed in the end:
//
//	running ─── fail ──► failed: err says why
//	   │                   │
//	   └────── stop ───────┴──► stopped: err is verbs.ErrClosed ── work ends, all is freed ──► over
//
// A goroutine that waits for an event also waits for done, which release closes: at once when it is stopped, and after a
// failure when the outstanding requests are flushed.
type life struct {
	stopping chan struct{}
	done     chan struct{}
	over     chan struct{}  // closed when everything is freed
	work     sync.WaitGroup // that ends before over is closed; none is added once it is stopped

	mu      sync.Mutex // innermost; held to change the state
	failure atomic.Pointer[error]
}

func newLife() life {
	return life{stopping: make(chan struct{}), done: make(chan struct{}), over: make(chan struct{})}
}

// stop begins the end; false if it was called before.
func (l *life) stop() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeOnce(l.stopping)
}

// fail stores the cause of a failure, and returns false if it has failed or was stopped before.
func (l *life) fail(cause error) (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure.Load() != nil || isClosed(l.stopping) {
		return false
	}
	l.failure.Store(&cause)
	return true
}

// release ends all waits; false if it was called before.
func (l *life) release() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return closeOnce(l.done)
}

func (l *life) stopped() bool { return isClosed(l.stopping) }

// err returns verbs.ErrClosed once it is stopped, the cause if it has failed, and nil while it runs.
func (l *life) err() error {
	if l.stopped() {
		return verbs.ErrClosed
	}
	if failure := l.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

func closeOnce(c chan struct{}) (first bool) {
	if isClosed(c) {
		return false
	}
	close(c)
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// The end of a session. A panic in one step does not prevent the others.

// Fail ends the session as if its device had failed, for a cause in its program. The requests of the program are flushed,
// it gets EventDeviceFatal, and its commands fail with verbs.ErrDeviceFatal and the cause. The session still has to be
// closed.
func (s *Session) Fail(cause error) { s.fail(cause) }

// fail ends the session as if its device had failed.
func (s *Session) fail(cause error) {
	failure := fmt.Errorf("%w: %w", verbs.ErrDeviceFatal, cause)
	first := false
	s.card.locked(func() {
		if first = s.Err() == nil && s.life.fail(failure); first {
			s.flushEach()
		}
	})
	if first {
		s.sayFatal()
	}
}

// Failure returns the cause if the session has failed, also after Close; otherwise nil.
func (s *Session) Failure() error {
	if failure := s.life.failure.Load(); failure != nil {
		return *failure
	}
	return nil
}

// flushEach is flushAll for a session in whose work a bug has shown, which may show again: a panic ends the flush of one
// queue pair only. The caller holds card.mu.
func (s *Session) flushEach() {
	for _, q := range s.qps.All() {
		if q.target != nil && q.target.shared(s) { // other sessions go on using it
			continue
		}
		fault.Contain(func() { q.engine().Do(q.flush) })
	}
}

// flushAll changes the state of all queue pairs to ERR, except those in RESET. It runs between two rounds.
func (s *Session) flushAll() {
	for _, q := range s.qps.All() {
		q.flush()
	}
}

func (q *qp) flush() {
	if verbs.QPState(q.state.Load()) != verbs.QPStateReset {
		q.state.Store(uint32(verbs.QPStateErr))
		q.engine().SetState(q.entry, verbs.QPStateErr)
	}
}

// sayFatal reports EventDeviceFatal to the program, after its outstanding requests are flushed.
func (s *Session) sayFatal() {
	s.entry.Engine().Settle(s.entry, flushTimeout)
	fatal := func() { s.events.put(provider.EventReport{Type: verbs.EventDeviceFatal}) }
	locked := func(do func()) func() { return func() { s.card.locked(do) } }
	for _, step := range []func(){locked(s.putNoted), s.cm.RemoveDevice, locked(fatal), locked(s.wakeWaiters), s.cm.Shut} { // that of the device is the last event
		fault.Contain(step)
	}
}

// free frees all objects of the session. No command of it runs any more. However a session ends, only free frees its
// objects.
func (s *Session) free() (failed error) {
	defer close(s.life.over)
	card := s.card
	step := func(do func() error) { failed = errors.Join(failed, fault.Call(do)) }
	locked := func(do func() error) {
		step(func() (err error) {
			card.locked(func() { err = do() })
			return err
		})
	}
	var left []*ah // peers of XRC targets
	s.entry.Engine().EndCalls(s.config.Calls)
	step(s.cm.End)
	locked(func() (err error) {
		left, err = freeDomains(s)
		return err
	})
	pairs, queues := s.qps.All(), s.cqs.All()
	locked(func() error { return forgetQPs(s, pairs) })
	locked(func() error {
		card.sessions = slices.DeleteFunc(card.sessions, func(other *Session) bool { return other == s })
		card.engine.SetUser(userOf(card.sessions))
		engine := s.entry.Engine()
		engine.Do(func() {
			engine.RemoveSession(s.entry)
			for _, c := range queues {
				engine.RemoveCQ(c.entry)
			}
		})
		return nil
	})
	step(s.cm.Free)
	step(func() error { return s.leavePaths(left) })
	for _, m := range s.joins.All() {
		if m.full {
			step(func() error { return card.host.Leave(m.group) })
		}
	}
	step(s.releaseAll)
	return network.HostError(failed)
}

// leavePaths releases the paths of address handles and connections, and of the peers in left.
func (s *Session) leavePaths(left []*ah) error {
	for _, peer := range left {
		s.card.paths.Leave(peer.path, s)
	}
	for _, a := range s.ahs.All() {
		s.card.paths.Leave(a.path, s)
	}
	for _, q := range s.qps.All() {
		if q.peer != nil {
			s.card.paths.Leave(q.peer.path, s)
		}
	}
	return nil
}

// releaseAll releases the session's memory, and its share of limits.
func (s *Session) releaseAll() error {
	for _, q := range s.qps.All() {
		s.release(q.memory...)
	}
	for _, q := range s.srqs.All() {
		s.release(q.memory...)
		s.release(q.unused...)
	}
	for _, c := range s.cqs.All() {
		s.release(c.memory, c.left)
	}
	for _, k := range s.keys.All() {
		if k.region != nil {
			k.region.free(s)
		}
	}
	for _, d := range s.dms.All() {
		s.release(d.memory)
	}
	s.release(s.doorbellMemory)
	for _, give := range []func(){
		s.pds.Release, s.channels.Release, s.cqs.Release, s.keys.Release, s.dms.Release, s.counters.Release, s.srqs.Release, s.xrcds.Release, s.qps.Release, s.ahs.Release,
		s.joins.Release,
	} {
		give()
	}
	return nil
}
