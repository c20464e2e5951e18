// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// countedMemory is memory that must be freed once, and not used afterwards.
type countedMemory struct {
	mu      sync.Mutex
	live    map[*byte]int
	refuses bool
}

func (m *countedMemory) Alloc(size int) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refuses {
		return nil, unix.ENOSPC
	}
	memory := ring.Alloc(size)
	m.live[&memory[0]] = size
	return memory, nil
}

func (m *countedMemory) Free(memory []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live[&memory[0]] != len(memory) {
		panic("freed what was not allocated")
	}
	delete(m.live, &memory[0])
	for i := range memory {
		memory[i] = 0xEE // to detect later accesses
	}
}

func (m *countedMemory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.live)
}

// Memory is allocated from the session's Memory and freed to it: with each object, and at the end for all open ones. A
// failed allocation is an error, and leaks nothing.
func TestMemoryOfASession(t *testing.T) {
	w := newWirePair(t)
	source := &countedMemory{live: map[*byte]int{}}
	s := w.a.another(SessionConfig{Memory: source})
	if n := source.count(); n != 5 { // doorbell, MR, CQ, two queues
		t.Errorf("got %d pieces of memory, want 5", n)
	}
	_, err := s.pd.RegMR(make([]byte, 10), 0)
	refused(t, err, unix.EOPNOTSUPP, "AllocMR")
	mr, err := s.pd.AllocMR(100, 0)
	check(t, err)
	qp := s.newQP(defaultCap())
	check(t, errors.Join(qp.Close(), mr.Close()))
	if n := source.count(); n != 5 {
		t.Errorf("got %d pieces of memory after two were closed", n)
	}
	source.refuses = true
	_, err = s.pd.AllocMR(100, 0)
	refused(t, err, verbs.ErrHost)
	refused(t, err, unix.ENOSPC)
	_, err = s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap()})
	refused(t, err, unix.ENOSPC)
	_, err = s.ctx.CreateCQ(8)
	refused(t, err, unix.ENOSPC)
	_, err = w.a.device.NewSession(SessionConfig{Memory: source})
	refused(t, err, unix.ENOSPC)
	source.refuses = false
	s.receive(1, 2, 3)
	check(t, s.ctx.Close())
	if n := source.count(); n != 0 {
		t.Errorf("got %d pieces of memory after all objects were closed", n)
	}
}

// heldMemory is memory whose Alloc blocks until released.
type heldMemory struct {
	*countedMemory
	held    chan struct{}
	waiting atomic.Int32
}

func (m *heldMemory) Alloc(size int) ([]byte, error) {
	m.waiting.Add(1)
	<-m.held
	return m.countedMemory.Alloc(size)
}

// Close waits for commands that are allocating, and every Close for the first: when one returns, the session's memory
// is no longer used.
func TestCloseWaitsForMemory(t *testing.T) {
	w := newWirePair(t)
	source := &heldMemory{countedMemory: &countedMemory{live: map[*byte]int{}}, held: make(chan struct{})}
	close(source.held)
	s := w.a.another(SessionConfig{Memory: source})
	session := w.a.device.sessions[1]
	source.held = make(chan struct{})
	source.waiting.Store(0)
	var commands, closing sync.WaitGroup
	for _, command := range []func(){
		func() { _, _ = s.pd.AllocMR(100, 0) },
		func() { _, _ = s.ctx.CreateCQ(8) },
		func() { _, _ = s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq}) },
	} {
		commands.Go(command)
	}
	eventually(t, "the commands", func() bool { return source.waiting.Load() == 3 })
	for range 3 {
		closing.Go(func() {
			check(t, s.ctx.Close())
			if n := source.count(); n != 0 {
				t.Errorf("got %d pieces of memory after Close", n)
			}
		})
	}
	eventually(t, "the end to begin", func() bool { return isClosed(session.life.stopping) })
	close(source.held)
	closing.Wait()
	commands.Wait()
	if n := source.count(); n != 0 {
		t.Errorf("%d pieces of memory were not freed", n)
	}
}

// A region that changes to the program's own memory frees the memory that the session had allocated for it; if the card
// cannot access that memory, the region keeps its own.
func TestReregGivesMemoryBack(t *testing.T) {
	w := newWirePair(t)
	s := w.a.another(SessionConfig{})
	session := w.a.device.sessions[1]
	before := session.memory.Load()
	mr, err := s.pd.AllocMR(1000, 0)
	check(t, err)
	check(t, mr.Rereg(&verbs.ReregAttr{Memory: make([]byte, 2000)}, verbs.ReregChangeTranslation))
	if now := session.memory.Load(); now != before {
		t.Errorf("the session uses %d bytes, before %d", now, before)
	}
	check(t, mr.Close())
	if now := session.memory.Load(); now != before {
		t.Errorf("the session uses %d bytes after Close, before %d", now, before)
	}

	source := &countedMemory{live: map[*byte]int{}}
	far := w.a.another(SessionConfig{Memory: source})
	pieces := source.count()
	refused(t, far.mr.Rereg(&verbs.ReregAttr{Memory: make([]byte, 10)}, verbs.ReregChangeTranslation), unix.EOPNOTSUPP, "AllocMR")
	check(t, far.mr.Rereg(&verbs.ReregAttr{Access: verbs.AccessLocalWrite}, verbs.ReregChangeAccess))
	if source.count() != pieces {
		t.Errorf("got %d pieces of memory, before %d", source.count(), pieces)
	}
	far.receive(0)
	far.post(far.send(1, far.ah("10.0.0.1"), far, far.piece(1, 10)))
	far.wait(2)
}
