// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"os"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"golang.org/x/sys/unix"
)

// brokenMemory is file-backed memory that a test can remove: accesses then raise SIGBUS.
type brokenMemory struct {
	testing.TB
	mu    sync.Mutex
	files []*os.File
}

func (m *brokenMemory) Alloc(size int) ([]byte, error) {
	fd, err := unix.MemfdCreate("broken", unix.MFD_CLOEXEC)
	check(m, err)
	file := os.NewFile(uintptr(fd), "broken")
	m.Cleanup(func() { check(m, file.Close()) })
	check(m, file.Truncate(int64(size)))
	memory, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	check(m, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files = append(m.files, file)
	return memory, nil
}

func (m *brokenMemory) Free(memory []byte) { check(m, unix.Munmap(memory)) }

// takeAway removes the memory that was allocated after the first pieces.
func (m *brokenMemory) takeAway(first int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range m.files[first:] {
		check(m, file.Truncate(0))
	}
}

// When memory of a session has been removed, only that session ends, also in the engine's worker: its program gets
// EventDeviceFatal and errors, and can be closed as usual. The other sessions continue.
func TestMemoryThatIsNotThere(t *testing.T) {
	w := newWirePair(t, WithoutInline())
	before := w.a.remains()
	memory := &brokenMemory{TB: t}
	broken := w.a.another(SessionConfig{Memory: memory})
	entry := broken.ctx
	check(t, broken.qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{broken.piece(1, slotLen)}}}))
	memory.takeAway(1) // all memory except the doorbell
	w.b.post(w.b.send(7, w.b.ah("10.0.0.1"), broken, w.b.piece(0, 8)))
	w.b.wait(1)

	broken.expectEvents(deviceFatal)
	_, err := entry.AllocPD()
	refused(t, err, verbs.ErrDeviceFatal, "please report it")
	w.b.post(w.b.send(8, w.b.ah("10.0.0.1"), broken, w.b.piece(0, 8))) // no receiver
	w.b.wait(1)

	w.a.receive(1)
	w.b.post(w.b.send(9, w.b.ah("10.0.0.1"), w.a, w.b.piece(0, 8)))
	w.b.wait(1)
	w.a.wait(1)
	statistics, err := w.a.device.Statistics()
	check(t, err)
	if statistics.Faults == 0 {
		t.Error("no fault was counted")
	}
	check(t, broken.session().Close())
	if after := w.a.remains(); after != before {
		t.Errorf("got %+v after the test, want %+v as before", after, before)
	}
}

// session returns the station's session of its card.
func (s *station) session() *Session {
	s.device.mu.Lock()
	defer s.device.mu.Unlock()
	return s.device.sessions[len(s.device.sessions)-1]
}

// A panic in the connection manager's work for an id ends only the session of that id.
func TestFaultInConnectionManagement(t *testing.T) {
	w := newWirePair(t)
	broken := w.a.another(SessionConfig{})
	c := newConnector(t, w.b, broken, "10.0.0.1")
	card := w.a.device
	session := broken.session()
	session.ids.Break()
	asks := c.ask()
	defer asks.Close()
	defer asks.DestroyQP()
	eventually(t, "the session ends", func() bool { return isClosed(session.Done()) })
	refused(t, session.Err(), verbs.ErrDeviceFatal)
	refused(t, session.Close(), verbs.ErrHost, "please report it") // its id cannot be ended either
	if _, err := broken.ctx.AllocPD(); err == nil || len(card.sessions) != 1 {
		t.Errorf("%v, %d sessions", err, len(card.sessions))
	}

	other := newConnector(t, w.b, w.a, "10.0.0.1") // another program's listener
	asks = other.ask()
	check(t, other.expect(other.to, cm.EventConnectRequest).Close())
	other.expect(other.from, cm.EventRejected)
	check(t, asks.DestroyQP())
	check(t, asks.Close())
}

// A panic in the work of the card's own session, for connection management, is repaired: afterwards the session has
// another queue pair.
func TestFaultOfTheManager(t *testing.T) {
	t.Parallel()
	w := newWirePair(t)
	card := w.a.device
	gsi := card.own
	card.engine.Do(func() {
		for _, q := range gsi.qps.All() {
			q.entry.Recv = nil
		}
	})
	for range 2 { // the first request meets the panic
		c := newConnector(t, w.b, w.a, "10.0.0.1")
		asks := c.ask()
		check(t, c.expect(c.to, cm.EventConnectRequest).Close())
		c.expect(c.from, cm.EventRejected)
		check(t, asks.DestroyQP())
		check(t, asks.Close())
	}
	statistics, err := card.Statistics()
	check(t, err)
	if statistics.Faults == 0 || isClosed(card.life.done) {
		t.Errorf("%d faults, the card has ended: %v", statistics.Faults, isClosed(card.life.done))
	}
}
