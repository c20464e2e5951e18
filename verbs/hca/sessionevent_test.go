// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/roced/roced/datapath/ring"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/provider"
)

// Events of the port go to all sessions, events of an object to its own session.
func TestEventsOfSessions(t *testing.T) {
	w := newWirePair(t)
	other := w.a.another(SessionConfig{})
	w.a.link(false)
	w.a.expectEvents(portErr)
	other.expectEvents(portErr)
	w.a.link(true)
	w.a.expectEvents(portActive)
	other.expectEvents(portActive)

	cq, qp := overrun(t, other, w.b)
	other.expectEvents(cqErr(cq), qpFatal(qp))
	w.a.noEvent()
}

// overrun makes a queue pair complete more than its CQ holds.
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

// A reader of events of a failing session gets the device's event first, and the cause after it.
func TestFatalBeforeTheReason(t *testing.T) {
	w := newWirePair(t)
	now, cancel := context.WithCancel(t.Context())
	cancel()
	for range 500 {
		s := w.a.another(SessionConfig{})
		failed := make(chan struct{})
		go func() {
			defer close(failed)
			s.session().Fail(errors.New("test failure"))
		}()
		err := context.Canceled
		var event provider.EventReport
		for errors.Is(err, context.Canceled) {
			event, err = s.session().GetAsyncEvent(now)
		}
		if err != nil || event.Type != verbs.EventDeviceFatal {
			t.Fatalf("%v, error %v", event.Type, err)
		}
		<-failed
		_, err = s.session().GetAsyncEvent(now)
		refused(t, err, verbs.ErrDeviceFatal)
		check(t, s.ctx.Close())
	}
}

// When the card fails or is closed, every session is notified.
func TestCardGoesForAll(t *testing.T) {
	w := newWirePair(t)
	other := w.a.another(SessionConfig{})
	w.a.device.fail(errors.New("test failure"))
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

// An armed CQ wakes the program by SessionConfig.Wake, with the CQ's EventID.
func TestWakeOfASession(t *testing.T) {
	w := newWirePair(t)
	woken := make(chan uint64, 16)
	session, err := w.a.device.NewSession(SessionConfig{Wake: func(id uint64) { woken <- id }})
	check(t, err)
	defer session.Close()
	pd, err := provider.Do(session, provider.AllocPD, provider.None{})
	check(t, err)
	grant, err := session.cqs.create(provider.CreateCQRequest{Entries: 8, EventID: 4711})
	check(t, err)
	if grant.Events != nil {
		t.Error("got an event channel although the session has its own Wake")
	}
	queue, err := ring.NewCompletionConsumer(grant.Memory, grant.Geometry)
	check(t, err)
	queue.ArmWait()
	qp, err := session.qps.create(provider.CreateQPRequest{PD: pd.PD, Type: verbs.QPTypeUD, SendCQ: grant.CQ, RecvCQ: grant.CQ, Cap: defaultCap()})
	check(t, err)
	for _, step := range []struct {
		attr verbs.QPAttr
		mask verbs.QPAttrMask
	}{
		{verbs.QPAttr{State: verbs.QPStateInit, Port: 1}, verbs.QPAttrState | verbs.QPAttrPKeyIndex | verbs.QPAttrPort | verbs.QPAttrQKey},
		{verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState},
	} {
		_, err := session.qps.modify(provider.ModifyQPRequest{QP: qp.QP, Attr: step.attr, Mask: step.mask})
		check(t, err)
	}
	recv, err := ring.NewRecvProducer(qp.RecvMemory, qp.RecvGeometry)
	check(t, err)
	recv.Put(1, nil)
	recv.Publish()
	if !recv.MustRing() {
		t.Fatal("a queue pair in error does not request the doorbell")
	}
	if session.Doorbell().Ring(0) {
		session.Wake()
	}
	select {
	case user := <-woken:
		if user != 4711 {
			t.Errorf("woken for EventID %d", user)
		}
	case <-guard(t).Done():
		t.Fatal("not woken")
	}
}

// A program that posts continuously delays its own notification of the card's failure, and no other's.
func TestFailureIsToldToEach(t *testing.T) {
	w := newWirePair(t, WithoutWorker())
	busy := w.a.another(SessionConfig{})
	session := w.a.device.sessions[1]
	send := ring.NewDoorbell(session.doorbellMemory)
	stop := make(chan struct{})
	var posting sync.WaitGroup
	posting.Go(func() {
		for !isClosed(stop) {
			send.Ring(0) // it always has more
		}
	})
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		w.a.device.fail(errors.New("test failure"))
	}()
	w.a.expectEvents(deviceFatal)
	_, err := w.a.ctx.AllocPD()
	refused(t, err, verbs.ErrDeviceFatal)
	close(stop)
	posting.Wait()
	<-failed
	busy.expectEvents(deviceFatal)
}

// TestForgetCQ: Forget is called for each destroyed CQ, and for no other.
func TestForgetCQ(t *testing.T) {
	w := newWirePair(t)
	var gone []uint64
	session, err := w.a.device.NewSession(SessionConfig{Wake: func(uint64) {}, Forget: func(id uint64) { gone = append(gone, id) }})
	check(t, err)
	make := func(id uint64) provider.Handle {
		grant, err := session.cqs.create(provider.CreateCQRequest{Entries: 1, EventID: id})
		check(t, err)
		return grant.CQ
	}
	one, other := make(77), make(88)
	check(t, session.cqs.destroy(provider.DestroyCQRequest{CQ: one}))
	if err := session.cqs.destroy(provider.DestroyCQRequest{CQ: one}); err == nil || len(gone) != 1 || gone[0] != 77 {
		t.Errorf("forgotten: %v; %v", gone, err)
	}
	check(t, session.cqs.destroy(provider.DestroyCQRequest{CQ: other}))
}
