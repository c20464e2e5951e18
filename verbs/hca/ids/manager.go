// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ids

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/internal/fault"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
)

// Manager runs a card's connection manager on QP 1, from the opening of the card until it is closed or fails. One
// goroutine serves both; it sleeps while there is no work.
//
// A program with the privilege for QP 1 can take it over, unless connection ids use the manager; the manager gets it
// back when the program's QP 1 is destroyed.
type Manager struct {
	Config
	wake chan struct{} // of capacity 1: there is work

	serving sync.Mutex // held for a round; before the card's locks
	qp1     *QP1
	faults  int // consecutive rounds that panicked; of the goroutine

	mu      sync.Mutex // innermost
	machine *cm.Manager
	users   int  // connection ids
	taken   bool // a program has QP 1, or is about to
}

// NewManager creates a manager, which has QP 1 from Open on.
func NewManager(c Config) *Manager {
	return &Manager{Config: c, wake: make(chan struct{}, 1), machine: cm.New(randomNumber)}
}

// Open acquires QP 1, in a session that open creates. That session calls wake when there is something to poll.
func (m *Manager) Open(open func(wake func()) (CardSession, error)) (err error) {
	if m.qp1, err = openQP1(open, m.Config, m.WakeUp); err != nil {
		return fmt.Errorf("QP 1: %w", err)
	}
	return nil
}

func randomNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}

// WakeUp makes the goroutine run a round. It does not block.
func (m *Manager) WakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// With calls a function with the connection manager. The function must not block. Its messages and events are delivered
// soon after With returns.
func (m *Manager) With(do func(m *cm.Manager, now time.Time)) {
	defer m.WakeUp()
	m.mu.Lock()
	defer m.mu.Unlock()
	do(m.machine, time.Now())
}

// Use counts a connection id that uses the connection manager, until Leave. It returns ErrBusy while a program has QP
// 1.
func (m *Manager) Use() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return fmt.Errorf("%w: a program has QP 1 of %s, and therefore its connection management; connection ids work after that program has closed QP 1", verbs.ErrBusy, m.Card.Name())
	}
	m.users++
	return nil
}

// Leave ends a use.
func (m *Manager) Leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users--
}

// Users returns the number of connection ids that use the manager.
func (m *Manager) Users() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.users
}

// Serving calls a function with QP 1, between two rounds.
func (m *Manager) Serving(do func(*QP1)) {
	m.serving.Lock()
	defer m.serving.Unlock()
	do(m.qp1)
}

// Run serves until the card has ended.
func (m *Manager) Run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.wake:
		case <-timer.C:
		case <-m.Ended:
			return
		}
		for m.roundContained() {
			m.deliver()
		}
		m.deliver()
		if due, some := m.Due(); some {
			timer.Reset(time.Until(due))
		}
	}
}

// round handles the received messages and expired timers, and sends. It returns false if there was no completion: then
// the next one wakes the goroutine.
func (m *Manager) round() (more bool) {
	m.serving.Lock()
	defer m.serving.Unlock()
	m.mu.Lock()
	taken := m.taken
	m.mu.Unlock()
	if !m.qp1.open(taken) {
		return false
	}
	arrived, completions := m.qp1.poll()
	now := time.Now()
	for _, a := range arrived {
		m.contain(func() { m.machine.Receive(now, a.path, a.payload) })
	}
	m.contain(func() { m.machine.Expire(now) })
	m.qp1.recycle(arrived)
	m.qp1.send(now, m.Next)
	return completions > 0
}

// roundContained is round with panics contained. A round that panics is followed by another, unless too many in a row
// do.
func (m *Manager) roundContained() (more bool) {
	f := fault.Contain(func() { more = m.round() })
	if f == nil {
		m.faults = 0
		return more
	}
	m.faulted(f, nil)
	m.faults++
	return m.faults < maxManagerFaults
}

// maxManagerFaults is the number of consecutive rounds that may panic before the manager waits for the next event.
const maxManagerFaults = 16

// contain calls the connection manager. A panic ends the session of the id whose message or timer was being handled.
func (m *Manager) contain(do func()) {
	m.mu.Lock()
	f := fault.Contain(do)
	owner := m.machine.InHand()
	m.mu.Unlock()
	if f != nil {
		m.faulted(f, owner)
	}
}

// faulted ends the session of an owner whose work has panicked; owner is nil if no owner is known.
func (m *Manager) faulted(f *fault.Fault, owner any) {
	if i, is := owner.(*ID); is {
		go fault.Contain(func() { i.session.program.Faulted(f) }) // it needs locks that may be held here
		return
	}
	m.NoteFault(f)
}

// sendNow sends waiting messages before it returns, as far as there is room. The caller holds no lock.
func (m *Manager) sendNow() {
	m.serving.Lock()
	defer m.serving.Unlock()
	if m.qp1.QP != nil {
		m.qp1.send(time.Now(), m.Next)
	}
}

// Next dequeues the next message to send.
func (m *Manager) Next() (cm.Datagram, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.NextDatagram()
}

// deliver delivers events to their owners.
func (m *Manager) deliver() {
	for {
		m.mu.Lock()
		e, some := m.machine.NextEvent()
		m.mu.Unlock()
		if !some {
			return
		}
		if f := fault.Contain(func() { e.Owner.(Owner).CMEvent(e) }); f != nil {
			m.faulted(f, e.Owner)
		}
	}
}

// reopenPause is the time after which the manager retries to acquire QP 1, if the host refused.
const reopenPause = time.Second

// Due returns the time when the next round is needed although nothing arrives.
func (m *Manager) Due() (at time.Time, some bool) {
	m.serving.Lock()
	defer m.serving.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.qp1.QP == nil {
		return time.Now().Add(reopenPause), !m.taken
	}
	at, some = m.machine.Deadline()
	if idle, handles := m.qp1.idleAt(); handles && (!some || idle.Before(at)) {
		return idle, true
	}
	return at, some
}

// Yield releases QP 1 to a program. The caller holds no lock.
func (m *Manager) Yield() error {
	if err := m.setTaken(); err != nil {
		return err
	}
	m.serving.Lock()
	defer m.serving.Unlock()
	if m.qp1.QP != nil {
		m.qp1.send(time.Now(), m.Next) // the last messages of ids that were just destroyed
	}
	m.qp1.closeQP()
	return nil
}

func (m *Manager) setTaken() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.taken:
		return fmt.Errorf("%w: QP 1 of this card has an owner", verbs.ErrBusy)
	case m.users > 0:
		return fmt.Errorf("%w: QP 1 of this card serves %d connection ids; destroy them first", verbs.ErrBusy, m.users)
	}
	m.taken = true
	return nil
}

// Regain makes the manager acquire QP 1 again, after a program had it.
func (m *Manager) Regain() {
	m.mu.Lock()
	m.taken = false
	m.mu.Unlock()
	m.WakeUp()
}

// flushTimeout is the maximum time for which Flush waits for messages to be sent.
const flushTimeout = time.Second

// ended reports whether the card has ended.
func (m *Manager) ended() bool {
	select {
	case <-m.Ended:
		return true
	default:
		return false
	}
}

// Mend makes the manager continue after a panic in the work of its session: mend resets engine and session, and the
// manager creates another queue pair.
func (m *Manager) Mend(mend func()) {
	m.Serving(func(q *QP1) { q.Failed = true })
	mend()
	m.WakeUp()
}

// Flush sends waiting messages before the card ends. It runs at least one round, since another may have dequeued a
// message without having sent it yet.
func (m *Manager) Flush() {
	if m.qp1 == nil || m.ended() {
		return // the card could not be opened, or has ended
	}
	for end := time.Now().Add(flushTimeout); ; {
		m.round()
		m.qp1.Session.Settle(flushTimeout)
		if !m.waiting() || time.Now().After(end) {
			return
		}
	}
}

// waiting reports whether messages wait that can be sent.
func (m *Manager) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.taken && !m.ended() && m.machine.Waiting()
}

// Counters returns the connection manager's counters, with the messages that QP 1 could not send.
func (m *Manager) Counters() (all cm.Counters) {
	if m.qp1 == nil {
		return all // the card could not be opened
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all = m.machine.Counters()
	all[cm.Unroutable] = m.qp1.unroutable.Load()
	return all
}
