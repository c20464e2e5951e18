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

// Manager runs a card's connection manager on QP 1, from when the card opens until it closes or
// fails. One goroutine serves both; it sleeps while there is nothing to do.
//
// A program that may have QP 1 takes it over, unless connection ids use the manager, and the manager
// has it back when the program's is destroyed.
type Manager struct {
	Config
	wake chan struct{} // of capacity 1: there is something to do

	serving sync.Mutex // held for a round; before the card's locks
	qp1     *QP1
	faults  int // rounds in a row that ended in a mistake; of the goroutine

	mu      sync.Mutex // innermost
	machine *cm.Manager
	users   int  // connection ids
	taken   bool // a program has QP 1, or is about to
}

// NewManager makes a manager, which has QP 1 from Open on.
func NewManager(c Config) *Manager {
	return &Manager{Config: c, wake: make(chan struct{}, 1), machine: cm.New(randomNumber)}
}

// Open takes QP 1, in a session that open makes. That session calls wake when there is something to poll.
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

// WakeUp has the goroutine do a round. It does not wait.
func (m *Manager) WakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// With gives the connection manager to a function, which must not wait. What it has sent, and its
// events, are on their way when it has returned.
func (m *Manager) With(do func(m *cm.Manager, now time.Time)) {
	defer m.WakeUp()
	m.mu.Lock()
	defer m.mu.Unlock()
	do(m.machine, time.Now())
}

// Use counts a connection id that uses the connection manager, until Leave. ErrBusy while a program
// has QP 1.
func (m *Manager) Use() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return fmt.Errorf("%w: a program has QP 1 of %s, and so its connection management; connection ids work when it has closed it", verbs.ErrBusy, m.Card.Name())
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

// Users is how many connection ids use the manager.
func (m *Manager) Users() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.users
}

// Serving gives QP 1 to a function, between two rounds.
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

// round takes what has arrived, does what is due, and sends. It returns false if there was no
// completion: then the next one wakes the goroutine.
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

// roundContained is round. One that ends in a mistake is followed by another, unless many in a row do.
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

// maxManagerFaults is how many rounds in a row may end in a mistake before the manager waits for what comes next.
const maxManagerFaults = 16

// contain has the connection manager do something. A mistake costs the session of the id whose message or
// timer was in hand.
func (m *Manager) contain(do func()) {
	m.mu.Lock()
	f := fault.Contain(do)
	owner := m.machine.InHand()
	m.mu.Unlock()
	if f != nil {
		m.faulted(f, owner)
	}
}

// faulted ends the session of an owner in whose work there was a mistake; nil for nobody's.
func (m *Manager) faulted(f *fault.Fault, owner any) {
	if i, is := owner.(*ID); is {
		go fault.Contain(func() { i.session.program.Faulted(f) }) // which needs locks that may be held here
		return
	}
	m.NoteFault(f)
}

// sendNow sends what waits before it returns, as far as there is room. The caller holds no lock.
func (m *Manager) sendNow() {
	m.serving.Lock()
	defer m.serving.Unlock()
	if m.qp1.QP != nil {
		m.qp1.send(time.Now(), m.Next)
	}
}

// Next takes the next message to send.
func (m *Manager) Next() (cm.Datagram, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.NextDatagram()
}

// deliver gives events to their owners.
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

// reopenPause is the time after which the manager tries again to take QP 1, if the host refused that.
const reopenPause = time.Second

// Due is when the next round is needed although nothing arrives.
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

// Yield gives QP 1 to a program. The caller holds no lock.
func (m *Manager) Yield() error {
	if err := m.setTaken(); err != nil {
		return err
	}
	m.serving.Lock()
	defer m.serving.Unlock()
	if m.qp1.QP != nil {
		m.qp1.send(time.Now(), m.Next) // the last words of ids that have just gone
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

// Regain has the manager take QP 1 again, which a program had.
func (m *Manager) Regain() {
	m.mu.Lock()
	m.taken = false
	m.mu.Unlock()
	m.WakeUp()
}

// flushTimeout is how long Flush waits for messages to leave.
const flushTimeout = time.Second

// ended says whether the card has.
func (m *Manager) ended() bool {
	select {
	case <-m.Ended:
		return true
	default:
		return false
	}
}

// Mend has the manager go on after a mistake in the work of its session, which mend has engine and session
// forget: it makes another queue pair.
func (m *Manager) Mend(mend func()) {
	m.Serving(func(q *QP1) { q.Failed = true })
	mend()
	m.WakeUp()
}

// Flush sends what waits to be sent, before the card ends: at least one round, since another may have taken a
// message and not have sent it yet.
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

// waiting says whether something waits to be sent, and can be.
func (m *Manager) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.taken && !m.ended() && m.machine.Waiting()
}

// Counters are the connection manager's, with what QP 1 could not send.
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
