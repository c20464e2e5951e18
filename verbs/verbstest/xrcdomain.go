// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"os"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var xrcDomainTests = []rig.Test{
	{Name: "XRC domains by inode", Run: xrcByInode},
	{Name: "XRC target opened", Run: xrcOpened},
	{Name: "XRC handlers of handles", Run: xrcHandlers},
	{Name: "XRC between programs", Run: xrcBetweenPrograms, Needs: func(p *rig.Pair) bool { return p.Beside != nil }},
	{Name: "XRC program gone", Run: xrcProgramGone, Needs: func(p *rig.Pair) bool { return p.Beside != nil }},
}

// xrcByInode checks that an inode identifies one domain while a program has it open.
func xrcByInode(t *testing.T, w *rig.World) {
	s, file := w.A, w.A.Inode()
	open := func(file *os.File, flags int) (*verbs.XRCD, error) {
		return s.Ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file, OFlags: flags})
	}
	_, err := open(file, 0)
	rig.Refused(t, err, unix.EAGAIN, "O_CREAT")
	rig.Refused(t, err, unix.EINVAL)
	first, err := open(file, os.O_CREATE|os.O_EXCL)
	rig.Check(t, err)
	_, err = open(file, os.O_CREATE|os.O_EXCL)
	rig.Refused(t, err, unix.EINVAL, "O_EXCL")
	again, err := os.Open(file.Name()) // another descriptor of the same inode
	rig.Check(t, err)
	second, err := open(again, 0)
	rig.Check(t, err)
	rig.Check(t, again.Close())
	target := s.NewTarget(first)
	opened, err := second.OpenQP(&verbs.QPOpenAttr{Number: target.Number()})
	rig.Check(t, err)
	other, err := open(w.A.Inode(), os.O_CREATE)
	rig.Check(t, err)
	_, err = other.OpenQP(&verbs.QPOpenAttr{Number: target.Number()})
	rig.Refused(t, err, unix.EINVAL, "no target")
	path, err := os.OpenFile(file.Name(), unix.O_PATH, 0)
	rig.Check(t, err)
	_, err = open(path, 0)
	rig.Refused(t, err, unix.EINVAL, "O_PATH")
	rig.Check(t, path.Close())
	rig.Refused(t, first.Close(), unix.EBUSY)
	rig.Check(t, target.Close())
	rig.Check(t, first.Close())
	_, err = open(file, 0) // the second handle keeps the domain open
	rig.Check(t, err)
	rig.Refused(t, second.Close(), unix.EBUSY)
	rig.Check(t, opened.Close())
	rig.Check(t, second.Close())
	// A closed file is refused.
	closed := w.A.Inode()
	descriptor, err := os.Open(closed.Name())
	rig.Check(t, err)
	rig.Check(t, descriptor.Close())
	_, err = open(descriptor, os.O_CREATE)
	rig.Refused(t, err, unix.EINVAL)
}

// xrcOpened checks that all handles of a target refer to the same queue pair and get its events, and that closing the
// last one destroys it.
func xrcOpened(t *testing.T, w *rig.World) {
	x := w.ConnectXRC(nil)
	number := x.Target.Number()
	opened, err := x.Domain.OpenQP(&verbs.QPOpenAttr{Number: number})
	rig.Check(t, err)
	if opened.Number() != number || opened.State() != verbs.QPStateRTS {
		t.Errorf("opened %v in %v", opened.Number(), opened.State())
	}
	got, init, err := opened.Query()
	rig.Check(t, err)
	if want, _, _ := x.Target.Query(); got != want || init.Type != verbs.QPTypeXRCRecv {
		t.Errorf("%+v, not %+v", got, want)
	}
	rig.To(t, opened, verbs.QPStateErr)
	if state := rig.StateOf(t, x.Target); state != verbs.QPStateErr {
		t.Errorf("the first handle reports state %v", state)
	}
	w.B.ExpectEvents(lastReached(x.Target), lastReached(opened))
	rig.Check(t, x.Target.Close())
	rig.Refused(t, x.Target.Close(), unix.EINVAL, "closed already")
	rig.To(t, opened, verbs.QPStateReset)
	rig.To(t, x.A.QP, verbs.QPStateReset)
	x.Target = opened
	x.Connect(nil)
	q := w.B.NewXRCQueue(x.Domain)
	q.Recv(1, 0, 100)
	x.A.Post(x.Request(verbs.WRSend, q, 10))
	q.Expect(rig.OK(1))
	x.A.Expect(rig.OK(1))
	rig.Check(t, opened.Close())
	_, err = x.Domain.OpenQP(&verbs.QPOpenAttr{Number: number})
	rig.Refused(t, err, unix.EINVAL, "no target")
	w.B.NoEvent()
}

// xrcHandlers checks that each handle of a target, created or opened, has its own event handler.
func xrcHandlers(t *testing.T, w *rig.World) {
	domain := w.A.NewXRCD()
	made, opened := make(chan verbs.AsyncEvent, 8), make(chan verbs.AsyncEvent, 8)
	first, err := domain.CreateQP(&verbs.QPInitAttr{
		Type: verbs.QPTypeXRCRecv, QPContext: "made", EventHandler: func(e verbs.AsyncEvent) { made <- e },
	})
	rig.Check(t, err)
	second, err := domain.OpenQP(&verbs.QPOpenAttr{
		Number: first.Number(), QPContext: "opened", EventHandler: func(e verbs.AsyncEvent) { opened <- e },
	})
	rig.Check(t, err)
	if first.QPContext() != "made" || second.QPContext() != "opened" {
		t.Errorf("contexts %v and %v", first.QPContext(), second.QPContext())
	}
	x := &rig.XRC{A: w.B.Peer(verbs.QPTypeXRCSend), B: w.A, Domain: domain, Target: first}
	x.Connect(nil)
	rig.To(t, first, verbs.QPStateErr)
	for qp, events := range map[*verbs.QP]chan verbs.AsyncEvent{first: made, second: opened} {
		if e := rig.Get(t, events); e != lastReached(qp) {
			t.Errorf("%+v, not %+v", e, lastReached(qp))
		}
	}
	rig.Check(t, second.Close())
	rig.Check(t, first.Close())
	rig.Check(t, domain.Close())
	w.A.NoEvent()
}

// shared contains two programs on A's card that share a domain through an inode, and an initiator of station B.
type shared struct {
	beside         *rig.Station
	x              *rig.XRC
	domain, theirs *verbs.XRCD
	opened         *verbs.QP
}

// share creates a target in one program, and opens it in another one. The initiator is B's.
func share(t *testing.T, w *rig.World) *shared {
	t.Helper()
	end := w.A.End
	end.Provider = w.Pair.Beside()
	s := &shared{beside: rig.NewStation(t, end)}
	file := w.A.Inode()
	var err error
	s.domain, err = w.A.Ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file, OFlags: os.O_CREATE})
	rig.Check(t, err)
	s.theirs, err = s.beside.Ctx.OpenXRCD(&verbs.XRCDInitAttr{File: file})
	rig.Check(t, err)
	s.x = w.B.ConnectXRC(w.A, s.domain, nil)
	s.opened, err = s.theirs.OpenQP(&verbs.QPOpenAttr{Number: s.x.Target.Number()})
	rig.Check(t, err)
	return s
}

// xrcBetweenPrograms checks that two programs of one user can share a target, and that each receives the messages to
// its own SRQ only.
func xrcBetweenPrograms(t *testing.T, w *rig.World) {
	s := share(t, w)
	own, other := w.A.NewXRCQueue(s.domain), s.beside.NewXRCQueue(s.theirs)
	for i, q := range []*rig.XRCQueue{own, other, other, own} {
		q.Recv(uint64(i), 0, 100)
		s.x.A.Post(s.x.Request(verbs.WRSend, q, 10))
		if wc := q.Expect(rig.OK(uint64(i)))[0]; wc.QPN != s.opened.Number() {
			t.Errorf("%+v", wc)
		}
		s.x.A.Expect(rig.OK(1))
	}
	// Programs share the domain, but not the keys of their memory.
	wr := s.x.Request(verbs.WRRDMARead, own, 8)
	wr.RemoteSRQN = other.Number()
	s.x.A.Post(wr)
	s.x.A.Expect(rig.Ended(1, verbs.WCRemAccessErr))
	for station, qp := range map[*rig.Station]*verbs.QP{w.A: s.x.Target, s.beside: s.opened} {
		station.ExpectEvents(verbs.AsyncEvent{Type: verbs.EventQPAccessErr, QP: qp}, lastReached(qp))
	}
}

// xrcProgramGone checks that the SRQs of a program are destroyed when it ends, and that other programs keep the target.
func xrcProgramGone(t *testing.T, w *rig.World) {
	s := share(t, w)
	own, other := w.A.NewXRCQueue(s.domain), s.beside.NewXRCQueue(s.theirs)
	rig.Check(t, s.x.Target.Close()) // closed by the program that created it
	other.Recv(1, 0, 100)
	s.x.A.Post(s.x.Request(verbs.WRSend, other, 10))
	other.Expect(rig.OK(1))
	s.x.A.Expect(rig.OK(1))
	again, err := s.domain.OpenQP(&verbs.QPOpenAttr{Number: s.opened.Number()})
	rig.Check(t, err)
	rig.Check(t, s.beside.Ctx.Close())
	own.Recv(2, 0, 100)
	s.x.A.Post(s.x.Request(verbs.WRSend, own, 10))
	own.Expect(rig.OK(2))
	s.x.A.Expect(rig.OK(1))
	s.x.A.Post(s.x.Request(verbs.WRSend, other, 10))
	s.x.A.Expect(rig.Ended(1, verbs.WCRemInvReqErr))
	w.A.ExpectEvents(verbs.AsyncEvent{Type: verbs.EventQPReqErr, QP: again}, lastReached(again))
	rig.Check(t, again.Close())
	rig.Check(t, own.SRQ.Close())
	rig.Check(t, s.domain.Close())
}
