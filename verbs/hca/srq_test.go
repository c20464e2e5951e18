// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/network"
	"golang.org/x/sys/unix"
)

func (s *station) newSRQ(receives uint32) *verbs.SRQ {
	s.Helper()
	q, err := s.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: receives, MaxSGE: 4})
	check(s, err)
	return q
}

// The memory of queues that a resize has replaced is freed by the second resize after they are empty, since the program
// may use them until its next request, however often that is; a failed resize keeps none, and Close frees the rest.
func TestSRQMemory(t *testing.T) {
	w := newWirePair(t)
	s := w.a.another(SessionConfig{})
	session := w.a.device.sessions[1]
	before := session.memory.Load()
	q := s.newSRQ(16)
	one := session.memory.Load() - before
	for range 100 {
		check(t, q.Modify(&verbs.SRQAttr{MaxWR: 16}, verbs.SRQMaxWR))
		if now := session.memory.Load() - before; now > 3*one {
			t.Fatalf("got %d bytes, with %d per queue", now, one)
		}
	}
	check(t, q.PostRecv(make([]verbs.RecvWR, 3)))
	now := session.memory.Load()
	for _, attr := range []verbs.SRQAttr{{MaxWR: 2}, {MaxWR: 16, Limit: 17}} {
		refused(t, q.Modify(&attr, verbs.SRQMaxWR|verbs.SRQLimit), unix.EINVAL)
	}
	if session.memory.Load() > now {
		t.Errorf("got %d bytes after refused resizes, want %d as before", session.memory.Load(), now)
	}
	for range 100 {
		if err := q.Modify(&verbs.SRQAttr{MaxWR: 16}, verbs.SRQMaxWR); err != nil {
			refused(t, err, unix.EBUSY)
		}
		if err := q.PostRecv(make([]verbs.RecvWR, 1)); err != nil {
			refused(t, err, unix.ENOMEM)
		}
	}
	check(t, q.Close())
	if now := session.memory.Load(); now != before {
		t.Errorf("%d bytes of the SRQ were not freed", now-before)
	}
}

// Closing a session with SRQs frees all their memory.
func TestSRQMemoryOfASession(t *testing.T) {
	w := newWirePair(t)
	s := w.a.another(SessionConfig{})
	session := w.a.device.sessions[1]
	q := s.newSRQ(16)
	for range 3 {
		check(t, q.PostRecv(make([]verbs.RecvWR, 1)))
		check(t, q.Modify(&verbs.SRQAttr{MaxWR: 16}, verbs.SRQMaxWR))
	}
	check(t, s.ctx.Close())
	if left := session.memory.Load(); left != 0 {
		t.Errorf("%d bytes were not freed", left)
	}
}

// awaitEnd checks that no event follows.
func (s *station) awaitEnd() {
	s.Helper()
	_, err := s.ctx.GetAsyncEvent(guard(s))
	refused(s, err, verbs.ErrDeviceFatal)
}

// When the device fails, queue pairs with an SRQ also change to ERR: posts to the SRQ return the cause, and all can be
// closed.
func TestDeviceFailsWithSRQ(t *testing.T) {
	w := newWirePair(t)
	s := w.a
	q := s.newSRQ(8)
	qp, err := s.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: s.cq, RecvCQ: s.cq, SRQ: q})
	check(t, err)
	check(t, qp.Activate(testQKey))
	check(t, q.PostRecv(make([]verbs.RecvWR, 3)))
	s.device.fail(network.ErrGone)
	s.expectEvents(verbs.AsyncEvent{Type: verbs.EventQPLastWQEReached, QP: qp}, deviceFatal)
	s.awaitEnd()
	refused(t, q.PostRecv(make([]verbs.RecvWR, 1)), verbs.ErrDeviceFatal)
	refused(t, q.Modify(&verbs.SRQAttr{Limit: 1}, verbs.SRQLimit), verbs.ErrDeviceFatal)
	_, err = q.Query()
	refused(t, err, verbs.ErrDeviceFatal)
	_, err = s.pd.CreateSRQ(&verbs.SRQInitAttr{MaxWR: 1})
	refused(t, err, verbs.ErrDeviceFatal)
	refused(t, q.Close(), verbs.ErrBusy)
	check(t, qp.Close())
	check(t, q.Close())
}

// QP 1 requires the privilege for Q_Keys with the high bit, which the session's owner grants. The card gets it back
// when the program closes it.
func TestGSI(t *testing.T) {
	w := newWirePair(t)
	allowed := false
	s := w.a.another(SessionConfig{Privileged: func() bool { return allowed }})
	init := &verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: s.cq, RecvCQ: s.cq, Cap: defaultCap(), Port: 1}
	_, err := s.pd.CreateQP(init)
	refused(t, err, unix.EPERM, "CAP_NET_RAW")
	allowed = true
	gsi, err := s.pd.CreateQP(init)
	check(t, err)
	check(t, gsi.Activate(0x80010000))
	toGSI := w.b.send(1, w.b.ah("10.0.0.1"), w.b)
	toGSI.RemoteQPN = 1
	w.b.post(toGSI)
	w.b.wait(1)
	eventually(t, "a wrong Q_Key", func() bool { return w.a.drops()["qkey"] == 1 })
	other := w.a.another(SessionConfig{Privileged: func() bool { return true }})
	init = &verbs.QPInitAttr{Type: verbs.QPTypeGSI, SendCQ: other.cq, RecvCQ: other.cq, Port: 1}
	_, err = other.pd.CreateQP(init)
	refused(t, err, unix.EBUSY)
	check(t, s.ctx.Close()) // while it has QP 1
	w.b.post(toGSI)
	w.b.wait(1)
	eventually(t, "the card has QP 1, or is getting it", func() bool {
		d := w.a.drops()
		return d["unknown_qp"]+d["qp_state"]+d["qkey"] == 2
	})
	_, err = other.pd.CreateQP(init)
	check(t, err)
}
