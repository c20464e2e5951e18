package hca

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// another makes a station in a further session of a station's card.
func (s *station) another(config SessionConfig) *station {
	s.Helper()
	session, err := s.device.NewSession(config)
	check(s, err)
	return newStationIn(s, s.device, session)
}

// remains are what a card has for all its sessions.
type remains struct{ sessions, queuePairs, groups, paths int }

func (s *station) remains() remains {
	card := s.device
	card.asking.Lock()
	defer card.asking.Unlock()
	card.mu.Lock()
	defer card.mu.Unlock()
	used := 0
	for _, p := range card.paths {
		used += p.users
	}
	return remains{len(card.sessions), len(card.qpsByPlace), len(card.groups.Groups()), used}
}

// Two programs on one card do not notice each other: they have the same handles for other
// objects, reach each other by the card's address and the other card by the wire.
func TestSessionsAreApart(t *testing.T) {
	w := newWirePair(t)
	one, two := w.a, w.a.another(SessionConfig{})
	if one.qp.Number() == two.qp.Number() {
		t.Fatalf("two queue pairs have number %v", one.qp.Number())
	}
	if one.mr.LKey() != two.mr.LKey() {
		t.Errorf("lkeys 0x%x and 0x%x: each session counts its own", one.mr.LKey(), two.mr.LKey())
	}
	for _, row := range []struct {
		from, to *station
		address  string
	}{{one, two, "10.0.0.1"}, {two, one, "10.0.0.1"}, {two, w.b, "10.0.0.2"}, {w.b, two, "10.0.0.1"}} {
		row.to.receive(1)
		copy(row.from.slot(0), "whose memory is it?")
		row.from.post(row.from.send(7, row.from.ah(row.address), row.to, row.from.piece(0, 19)))
		row.from.wait(1)
		wc := row.to.wait(1)[0]
		if _, payload := wc.Payload(row.to.slot(1)); string(payload) != "whose memory is it?" {
			t.Errorf("%q arrived", payload)
		}
		clear(row.from.slot(0))
		clear(row.to.slot(1))
	}
}

// Closing a session frees exactly what it had, in whatever state it is: the other goes on, and
// the card is as before.
func TestCloseFreesItsOwn(t *testing.T) {
	w := newWirePair(t)
	before := w.a.remains()
	stays := w.a.another(SessionConfig{})
	check(t, stays.qp.AttachMcast(gid(groupV4), 0))
	stays.ah("10.0.0.2")
	with := w.a.remains()

	goes := w.a.another(SessionConfig{})
	check(t, goes.qp.AttachMcast(gid(groupV4), 0))
	check(t, goes.qp.AttachMcast(gid(groupV6), 0))
	goes.ah("10.0.0.2")
	goes.ah(groupV4)
	_, err := goes.ctx.JoinMulticast(address(groupV4), verbs.JoinFullMember)
	check(t, err)
	goes.receive(1, 2, 3)
	for range 5 {
		goes.newQP(defaultCap())
	}
	check(t, goes.ctx.Close())
	if got := w.a.remains(); got != with {
		t.Errorf("%+v are left, want %+v", got, with)
	}
	_, err = goes.ctx.AllocPD()
	refused(t, err, verbs.ErrClosed)
	refused(t, goes.qp.PostSend([]verbs.SendWR{{}}), verbs.ErrClosed)
	check(t, goes.ctx.Close())

	stays.receive(1)
	w.b.post(w.b.toGroup(groupV4, 0, 5))
	w.b.wait(1)
	stays.wait(1)
	check(t, stays.ctx.Close())
	if got := w.a.remains(); got != before {
		t.Errorf("%+v are left, want %+v", got, before)
	}
}

// What was posted leaves before the session is gone.
func TestSessionSendsBeforeItGoes(t *testing.T) {
	w := newWirePair(t)
	s := w.a.another(SessionConfig{})
	w.b.receive(0, 1, 2, 3)
	ah := s.ah("10.0.0.2")
	for i := range 4 {
		s.post(s.send(uint64(i), ah, w.b, s.piece(i, 10)))
	}
	check(t, s.ctx.Close())
	w.b.wait(4)
}

// A session has limits and privileges of its own, and says so.
func TestLimitsOfASession(t *testing.T) {
	w := newWirePair(t)
	allowed := false
	session, err := w.a.device.NewSession(SessionConfig{
		Limits:     Limits{PDs: 2, MRs: 1, CQs: 2, SRQs: 1, QPs: 1, AHs: 1, Memberships: 1, Attachments: 1, Memory: 1 << 20},
		Privileged: func() bool { return allowed },
	})
	check(t, err)
	ctx, err := verbs.Open(session)
	check(t, err)
	attr, err := ctx.QueryDevice()
	check(t, err)
	if attr.MaxPD != 2 || attr.MaxMR != 1 || attr.MaxCQ != 2 || attr.MaxQP != 1 || attr.MaxSRQ != 1 || attr.MaxAH != 1 || attr.MaxTotalMcastQPAttach != 1 {
		t.Errorf("%+v", attr)
	}
	pd, err := ctx.AllocPD()
	check(t, err)
	_, err = pd.AllocMR(2<<20, 0)
	refused(t, err, unix.ENOMEM, "memory", "1048576")
	_, err = pd.AllocMR(4096, 0)
	check(t, err)
	_, err = pd.AllocMR(4096, 0)
	refused(t, err, verbs.ErrLimit, "1 MRs")
	cq, err := ctx.CreateCQ(8)
	check(t, err)
	_, err = pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1})
	check(t, err)
	_, err = pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1})
	refused(t, err, verbs.ErrLimit, "1 SRQs")
	init := &verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: cq, RecvCQ: cq, Cap: defaultCap()}
	qp, err := pd.CreateQP(init)
	check(t, err)
	_, err = pd.CreateQP(init)
	refused(t, err, verbs.ErrLimit, "1 QPs")
	refused(t, qp.Activate(0x80000001), verbs.ErrPermission)
	allowed = true
	check(t, qp.Activate(0x80000001))
	check(t, qp.AttachMcast(gid(groupV4), 0))
	refused(t, qp.AttachMcast(gid(groupV6), 0), verbs.ErrLimit)
	_, err = ctx.JoinMulticast(address(groupV4), verbs.JoinFullMember)
	check(t, err)
	_, err = ctx.JoinMulticast(address(groupV6), verbs.JoinFullMember)
	refused(t, err, verbs.ErrLimit, "1 memberships")
	w.a.another(SessionConfig{}) // others are not touched by it
}

// A limit below 0 is refused.
func TestLimitBelowZero(t *testing.T) {
	w := newWirePair(t)
	_, err := w.a.device.NewSession(SessionConfig{Limits: Limits{PDs: -1}})
	refused(t, err, unix.EINVAL, "-1")
}

// What happens to the port all sessions are told; what happens to an object its own.
func TestEventsOfSessions(t *testing.T) {
	w := newWirePair(t)
	other := w.a.another(SessionConfig{})
	w.a.hostSays(func(p *portStatus) { p.up = false })
	w.a.expectEvents(portErr)
	other.expectEvents(portErr)
	w.a.hostSays(func(p *portStatus) { p.up = true })
	w.a.expectEvents(portActive)
	other.expectEvents(portActive)

	cq, qp := overrun(t, other, w.b)
	other.expectEvents(cqErr(cq), qpFatal(qp))
	w.a.noEvent()
}

// overrun has a queue pair complete more than its CQ holds.
func overrun(t *testing.T, s, peer *station) (*verbs.CQ, *verbs.QP) {
	t.Helper()
	cq, err := s.ctx.CreateCQ(1)
	check(t, err)
	qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: cq, Cap: defaultCap()})
	check(t, err)
	check(t, qp.Activate(testQKey))
	ah := peer.ah("10.0.0.1")
	for i := range 2 {
		check(t, qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{s.piece(i, slotLen)}}}))
		wr := peer.send(1, ah, s, peer.piece(0, 1))
		wr.RemoteQPN = qp.Number()
		peer.post(wr)
		peer.wait(1)
	}
	return cq, qp
}

// When the card goes, by failure or by Close, every session is told.
func TestCardGoesForAll(t *testing.T) {
	w := newWirePair(t)
	other := w.a.another(SessionConfig{})
	w.a.device.fail(errors.New("as a test has it"))
	for _, s := range []*station{w.a, other} {
		s.expectEvents(deviceFatal)
		_, err := s.ctx.AllocPD()
		refused(t, err, verbs.ErrDeviceFatal)
	}
	_, err := w.a.device.NewSession(SessionConfig{})
	refused(t, err, verbs.ErrDeviceFatal)
	check(t, w.a.device.Close())
	for _, s := range []*station{w.a, other} {
		_, err := s.ctx.GetAsyncEvent(guard(t))
		refused(t, err, verbs.ErrClosed)
		check(t, s.ctx.Close())
	}
	_, err = w.a.device.NewSession(SessionConfig{})
	refused(t, err, verbs.ErrClosed)
}

// A session serves one Context.
func TestClaimOfASession(t *testing.T) {
	w := newWirePair(t)
	_, err := verbs.Open(w.a.device)
	refused(t, err, unix.EBUSY, "NewSession")
	session, err := w.a.device.NewSession(SessionConfig{})
	check(t, err)
	_, err = verbs.Open(session)
	check(t, err)
	_, err = verbs.Open(session)
	refused(t, err, verbs.ErrBusy)
}

// countedMemory is memory that is to be given back, once, and not used afterwards.
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
		memory[i] = 0xEE // whoever still uses it is found out
	}
}

func (m *countedMemory) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.live)
}

// Memory comes from the session's source, and goes back to it: with each object, and at the
// end, however much was open; what cannot be had is an error, and nothing stays behind.
func TestMemoryOfASession(t *testing.T) {
	w := newWirePair(t)
	source := &countedMemory{live: map[*byte]int{}}
	s := w.a.another(SessionConfig{Memory: source})
	if n := source.count(); n != 5 { // doorbell, MR, CQ, two queues
		t.Errorf("%d pieces of memory", n)
	}
	_, err := s.pd.RegMR(make([]byte, 10), 0)
	refused(t, err, unix.EOPNOTSUPP, "AllocMR")
	mr, err := s.pd.AllocMR(100, 0)
	check(t, err)
	qp := s.newQP(defaultCap())
	check(t, errors.Join(qp.Close(), mr.Close()))
	if n := source.count(); n != 5 {
		t.Errorf("%d pieces of memory after two were closed", n)
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
		t.Errorf("%d pieces of memory after all was closed", n)
	}
}

// An armed CQ's event goes the session's own way, by the number that the program gave the CQ.
func TestWakeOfASession(t *testing.T) {
	w := newWirePair(t)
	woken := make(chan uint64, 16)
	session, err := w.a.device.NewSession(SessionConfig{Wake: func(id uint64) { woken <- id }})
	check(t, err)
	defer session.Close()
	pd, err := session.AllocPD()
	check(t, err)
	grant, err := session.CreateCQ(verbs.CreateCQRequest{Entries: 8, EventID: 4711})
	check(t, err)
	if grant.Events != nil {
		t.Error("a channel, where the session has its own way")
	}
	queue, err := ring.NewCompletionConsumer(grant.Memory, grant.Geometry)
	check(t, err)
	queue.ArmWait()
	qp, err := session.CreateQP(verbs.CreateQPRequest{PD: pd.PD, Type: verbs.QPTypeUD, SendCQ: grant.CQ, RecvCQ: grant.CQ, Cap: defaultCap()})
	check(t, err)
	for _, step := range []struct {
		attr verbs.QPAttr
		mask verbs.QPAttrMask
	}{
		{verbs.QPAttr{State: verbs.QPStateInit, Port: 1}, verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey},
		{verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState},
	} {
		_, err := session.ModifyQP(verbs.ModifyQPRequest{QP: qp.QP, Attr: step.attr, Mask: step.mask})
		check(t, err)
	}
	recv, err := ring.NewRecvProducer(qp.RecvMemory, qp.RecvGeometry)
	check(t, err)
	recv.Put(1, nil)
	recv.Publish()
	if !recv.MustRing() {
		t.Fatal("a queue pair in error does not ask for the doorbell")
	}
	if session.Doorbell().Ring(0) {
		session.Wake()
	}
	select {
	case user := <-woken:
		if user != 4711 {
			t.Errorf("woken for %d", user)
		}
	case <-guard(t).Done():
		t.Fatal("not woken")
	}
}

// A card has only so many sessions, and says so.
func TestManySessions(t *testing.T) {
	w := newWirePair(t)
	for range maxSessions - 1 {
		_, err := w.a.device.NewSession(SessionConfig{})
		check(t, err)
	}
	_, err := w.a.device.NewSession(SessionConfig{})
	refused(t, err, verbs.ErrLimit, fmt.Sprint(maxSessions))
	w.b.receive(1)
	w.a.post(w.a.send(1, w.a.ah("10.0.0.2"), w.b, w.a.piece(0, 3)))
	w.b.wait(1)
}

// Sessions come and go while others work; nothing stays behind, and no message is lost.
func TestSessionsUnderTraffic(t *testing.T) {
	w := newWirePair(t)
	before := w.a.remains()
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for ctx.Err() == nil {
				s := w.a.another(SessionConfig{Memory: &countedMemory{live: map[*byte]int{}}})
				s.receive(0)
				s.post(s.send(1, s.ah("10.0.0.1"), s, s.piece(1, 10)))
				s.wait(2)
				check(t, s.ctx.Close())
			}
		})
	}
	ah := w.a.ah("10.0.0.2")
	for i := range 2000 {
		w.b.receive(i % 8)
		w.a.post(w.a.send(uint64(i), ah, w.b, w.a.piece(0, 10)))
		if got := append(w.a.wait(1), w.b.wait(1)...); got[0].ID != uint64(i) || slices.ContainsFunc(got, func(wc verbs.WC) bool { return wc.Err() != nil }) {
			t.Fatalf("message %d: %+v", i, got)
		}
	}
	stop()
	group.Wait()
	after := w.a.remains()
	if after.paths--; after != before {
		t.Errorf("%+v are left, want %+v", after, before)
	}
}

// Sessions that close while the card closes are freed once, and all of them.
func TestSessionsCloseWithTheCard(t *testing.T) {
	for range 20 {
		w := newWirePair(t)
		source := &countedMemory{live: map[*byte]int{}}
		var group sync.WaitGroup
		for range 8 {
			s := w.a.another(SessionConfig{Memory: source})
			check(t, s.qp.AttachMcast(gid(groupV4), 0))
			s.ah("10.0.0.2")
			group.Go(func() { check(t, s.ctx.Close()) })
		}
		check(t, w.a.device.Close())
		group.Wait()
		if n := source.count(); n != 0 {
			t.Fatalf("%d pieces of memory are left", n)
		}
	}
}

// heldMemory is memory whose Alloc waits until it is let go.
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

// Close waits for commands that are allocating, and every Close for the first: when one returns,
// the session's memory is not used any more.
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
				t.Errorf("%d pieces of memory after Close", n)
			}
		})
	}
	eventually(t, "the end to begin", func() bool { return isClosed(session.stop) })
	close(source.held)
	closing.Wait()
	commands.Wait()
	if n := source.count(); n != 0 {
		t.Errorf("%d pieces of memory are left", n)
	}
}

// A program that posts on and on delays its own word of the card's failure, and nobody else's.
func TestFailureIsToldToEach(t *testing.T) {
	w := newWirePair(t, WithoutWorker())
	busy := w.a.another(SessionConfig{})
	session := w.a.device.sessions[1]
	send := ring.NewDoorbell(session.doorbellMemory)
	stop := make(chan struct{})
	var posting sync.WaitGroup
	posting.Go(func() {
		for !isClosed(stop) {
			send.Ring(0) // it has more, again and again
		}
	})
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		w.a.device.fail(errors.New("as a test has it"))
	}()
	w.a.expectEvents(deviceFatal)
	_, err := w.a.ctx.AllocPD()
	refused(t, err, verbs.ErrDeviceFatal)
	close(stop)
	posting.Wait()
	<-failed
	busy.expectEvents(deviceFatal)
}
