//go:build linux

package hca

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

// manager runs the card's connection manager on QP 1, from when the card opens until it closes or
// fails. One goroutine serves both; it sleeps while there is nothing to do.
//
// A program that may have QP 1 takes it over, unless connection ids use the manager, and the manager
// has it back when the program's is destroyed.
type manager struct {
	card *Card
	wake chan struct{} // of capacity 1: there is something to do

	serving sync.Mutex // held for a round; before Card.asking
	gsi     *gsi
	faults  int // rounds in a row that ended in a mistake; of the goroutine

	mu      sync.Mutex // innermost
	machine *cm.Manager
	users   int  // connection ids
	taken   bool // a program has QP 1, or is about to
}

// cmOwner is the owner of an inquiry or a listener. cmEvent is called by one goroutine, without a lock.
// It must not wait.
type cmOwner interface{ cmEvent(cm.Event) }

// newManager takes QP 1.
func newManager(card *Card) (*manager, error) {
	m := &manager{card: card, wake: make(chan struct{}, 1), machine: cm.New(randomNumber)}
	var err error
	if m.gsi, err = openGSI(card, m.wakeUp); err != nil {
		return nil, fmt.Errorf("QP 1: %w", err)
	}
	return m, nil
}

func randomNumber() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}

// wakeUp has the goroutine do a round. It does not wait.
func (m *manager) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// withCM gives the connection manager to a function, which must not wait. What it has sent, and its
// events, are on their way when it has returned. The caller may hold Card.mu.
func (card *Card) withCM(do func(m *cm.Manager, now time.Time)) {
	m := card.manager
	defer m.wakeUp()
	m.mu.Lock()
	defer m.mu.Unlock()
	do(m.machine, time.Now())
}

// useCM counts a connection id that uses the connection manager, until leaveCM. ErrBusy while a program
// has QP 1. The caller may hold Card.mu.
func (card *Card) useCM() error {
	m := card.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taken {
		return fmt.Errorf("%w: a program has QP 1 of %s, and so its connection management; connection ids work when it has closed it", verbs.ErrBusy, card.Name())
	}
	m.users++
	return nil
}

// leaveCM ends a use.
func (card *Card) leaveCM() {
	card.manager.mu.Lock()
	defer card.manager.mu.Unlock()
	card.manager.users--
}

// run serves until the card has ended.
func (m *manager) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.wake:
		case <-timer.C:
		case <-m.card.done:
			return
		}
		for m.roundContained() {
			m.deliver()
		}
		m.deliver()
		if due, some := m.due(); some {
			timer.Reset(time.Until(due))
		}
	}
}

// round takes what has arrived, does what is due, and sends. It returns false if there was no
// completion: then the next one wakes the goroutine.
func (m *manager) round() (more bool) {
	m.serving.Lock()
	defer m.serving.Unlock()
	m.mu.Lock()
	taken := m.taken
	m.mu.Unlock()
	if !m.gsi.open(taken) {
		return false
	}
	arrived, completions := m.gsi.poll()
	now := time.Now()
	for _, a := range arrived {
		m.contain(func() { m.machine.Receive(now, a.path, a.payload) })
	}
	m.contain(func() { m.machine.Expire(now) })
	m.gsi.recycle(arrived)
	m.gsi.send(now, m.next)
	return completions > 0
}

// roundContained is round. One that ends in a mistake is followed by another, unless many in a row do.
func (m *manager) roundContained() (more bool) {
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
func (m *manager) contain(do func()) {
	m.mu.Lock()
	f := fault.Contain(do)
	owner := m.machine.InHand()
	m.mu.Unlock()
	if f != nil {
		m.faulted(f, owner)
	}
}

// faulted ends the session of an owner in whose work there was a mistake; nil for nobody's.
func (m *manager) faulted(f *fault.Fault, owner any) {
	if i, is := owner.(*id); is {
		go fault.Contain(func() { i.session.Faulted(f) }) // which needs locks that may be held here
		return
	}
	m.card.faults.Add(1)
	m.card.logFault(f, "device", m.card.Name(), "in", "connection management")
}

// sendNow sends what waits before it returns, as far as there is room. The caller holds no lock.
func (m *manager) sendNow() {
	m.serving.Lock()
	defer m.serving.Unlock()
	if m.gsi.qp != nil {
		m.gsi.send(time.Now(), m.next)
	}
}

// next takes the next message to send.
func (m *manager) next() (cm.Datagram, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.machine.NextDatagram()
}

// deliver gives events to their owners.
func (m *manager) deliver() {
	for {
		m.mu.Lock()
		e, some := m.machine.NextEvent()
		m.mu.Unlock()
		if !some {
			return
		}
		if f := fault.Contain(func() { e.Owner.(cmOwner).cmEvent(e) }); f != nil {
			m.faulted(f, e.Owner)
		}
	}
}

// reopenPause is the time after which the manager tries again to take QP 1, if the host refused that.
const reopenPause = time.Second

// due is when the next round is needed although nothing arrives.
func (m *manager) due() (at time.Time, some bool) {
	m.serving.Lock()
	defer m.serving.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gsi.qp == nil {
		return time.Now().Add(reopenPause), !m.taken
	}
	at, some = m.machine.Deadline()
	if idle, handles := m.gsi.idleAt(); handles && (!some || idle.Before(at)) {
		return idle, true
	}
	return at, some
}

// yield gives QP 1 to a program. The caller holds no lock.
func (m *manager) yield() error {
	if err := m.setTaken(); err != nil {
		return err
	}
	m.serving.Lock()
	defer m.serving.Unlock()
	if m.gsi.qp != nil {
		m.gsi.send(time.Now(), m.next) // the last words of ids that have just gone
	}
	m.gsi.closeQP()
	return nil
}

func (m *manager) setTaken() error {
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

// regain has the manager take QP 1 again, which a program had. The caller may hold Card.mu.
func (m *manager) regain() {
	m.mu.Lock()
	m.taken = false
	m.mu.Unlock()
	m.wakeUp()
}

// flush sends what waits to be sent, before the card ends: at least one round, since another may have taken a
// message and not have sent it yet.
func (m *manager) flush() {
	if m == nil || isClosed(m.card.done) {
		return // the card could not be opened, or has ended
	}
	for end := time.Now().Add(closeTimeout); ; {
		m.round()
		m.card.engine.Settle(m.gsi.session.entry, closeTimeout)
		if !m.waiting() || time.Now().After(end) {
			return
		}
	}
}

// waiting says whether something waits to be sent, and can be.
func (m *manager) waiting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.taken && !isClosed(m.card.done) && m.machine.Waiting()
}

// counters are the connection manager's, with what QP 1 could not send.
func (m *manager) counters() (all cm.Counters) {
	if m == nil {
		return all // the card could not be opened
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all = m.machine.Counters()
	all[cm.Unroutable] = m.gsi.unroutable.Load()
	return all
}
