package hca

import (
	"context"
	"errors"
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

// What has been posted leaves when the device, or the queue pair, is closed at once.
func TestPostThenClose(t *testing.T) {
	const messages = depth
	for name, closer := range map[string]func(s *station) error{
		"context":    func(s *station) error { return s.ctx.Close() },
		"queue pair": func(s *station) error { return s.qp.Close() },
		"drain":      func(s *station) error { return s.qp.Drain(guard(s)) },
	} {
		for mode, options := range map[string][]Option{"worker": {WithoutInline()}, "inline": nil, "no worker": {WithoutWorker()}} {
			t.Run(name+", "+mode, func(t *testing.T) {
				w := newWirePair(t, options...)
				a, b := w.a, w.b
				ah := a.ah("10.0.0.2")
				for i := range messages {
					b.receive(i)
				}
				var list []verbs.SendWR
				for i := range uint64(messages) {
					wr := a.send(i, ah, b, a.piece(0, 10))
					wr.Flags = 0
					list = append(list, wr)
				}
				a.device.engine.Do(func() { // nobody runs a round meanwhile
					check(t, a.qp.PostSend(list))
				})
				check(t, closer(a))
				eventually(t, "all messages", func() bool {
					b.device.Progress()
					return b.device.engine.Counters().Delivered == messages
				})
			})
		}
	}
}

// What cannot move is not waited for.
func TestDrainOfAHeldQueue(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	ah := a.ah("10.0.0.2")
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, ah, w.b))
	refused(t, a.qp.Drain(context.Background()), verbs.ErrState, "SQD", "1 send")
	to(t, a.qp, verbs.QPStateRTS)
	check(t, a.qp.Drain(context.Background()))
	expect(t, a.completions(), ok(1))
	check(t, a.qp.Drain(context.Background()))
	to(t, a.qp, verbs.QPStateErr)
	a.post(a.send(2, ah, w.b))
	check(t, a.qp.Drain(context.Background())) // flushed is carried out too
	expect(t, a.completions(), flushed(2))
	check(t, a.qp.Close())
	refused(t, a.qp.Drain(context.Background()), verbs.ErrObjectClosed)
}

// A link that takes nothing ends Drain with its context.
func TestDrainGivesUp(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	big := a.newQP(verbs.QPCap{MaxSendWR: 1024, MaxRecvWR: 1})
	check(t, big.Activate(testQKey))
	wr := a.send(1, a.ah("10.0.0.2"), w.b)
	wr.Flags = 0
	list := make([]verbs.SendWR, 1024)
	for i := range list {
		list[i] = wr
	}
	check(t, big.PostSend(list))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := big.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("drain of a full wire: %v", err)
	}
	refused(t, big.PostSend(list), verbs.ErrQueueFull, "Drain")
	check(t, w.b.device.Close()) // the wire has no other end: what is sent is gone
	check(t, big.Drain(guard(t)))
	check(t, big.PostSend(list))
}

// nil where an object or attributes are needed is an error.
func TestNil(t *testing.T) {
	s := newStillPair(t).a
	var (
		noPD         *verbs.PD
		noQP         *verbs.QP
		noCQ         *verbs.CQ
		noMR         *verbs.MR
		noAH         *verbs.AH
		noMembership *verbs.Membership
		noContext    *verbs.Context
	)
	_, createQP := s.pd.CreateQP(nil)
	_, createAH := s.pd.CreateAH(guard(t), nil)
	_, fromWC := s.pd.CreateAHFromWC(nil, nil, 1)
	_, attrFromWC := s.ctx.AHAttrFromWC(nil, nil, 1)
	_, ofNoPD := noPD.CreateQP(&verbs.QPInitAttr{})
	_, ahOfNoPD := noPD.CreateAH(guard(t), &verbs.AHAttr{})
	_, fromWCOfNoPD := noPD.CreateAHFromWC(&verbs.WC{}, nil, 1)
	_, mrOfNoPD := noPD.AllocMR(1, 0)
	_, regOfNoPD := noPD.RegMR(make([]byte, 1), 0)
	for name, err := range map[string]error{
		"CreateQP(nil)": createQP, "CreateAH(nil)": createAH, "CreateAHFromWC(nil)": fromWC, "AHAttrFromWC(nil)": attrFromWC,
		"nil PD: CreateQP": ofNoPD, "nil PD: CreateAH": ahOfNoPD, "nil PD: CreateAHFromWC": fromWCOfNoPD, "nil PD: AllocMR": mrOfNoPD, "nil PD: RegMR": regOfNoPD,
		"Modify(nil)": s.qp.Modify(nil, verbs.QPAttrState), "nil QP: Modify": noQP.Modify(&verbs.QPAttr{}, 0), "nil QP: Close": noQP.Close(),
		"nil CQ: Close": noCQ.Close(), "nil MR: Close": noMR.Close(), "nil AH: Close": noAH.Close(), "nil PD: Close": noPD.Close(),
		"nil membership: Close": noMembership.Close(), "nil context: Close": noContext.Close(),
	} {
		t.Run(name, func(t *testing.T) { refused(t, err, unix.EINVAL, "nil") })
	}
	check(t, s.qp.PostSend(nil))
	check(t, s.qp.PostRecv(nil))
	n, err := s.cq.Poll(nil)
	if n != 0 || err != nil {
		t.Errorf("poll of nothing: %d, %v", n, err)
	}
}

// A message that is too long is told with the number that counts.
func TestLongerThanTheMTU(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	a.device.engine.Do(func() { a.device.engine.SetMTU(wire.MTU2048) })
	ah := a.ah("10.0.0.2")
	a.post(a.send(1, ah, w.b, a.piece(0, 2048)), a.send(2, ah, w.b, a.mr.SGE(0, 2049)), a.send(3, ah, w.b))
	w.run()
	got := a.completions()
	expect(t, got, ok(1), outcome{2, verbs.WCLocLenErr}, flushed(3))
	if got[1].VendorErr != 2048 || got[0].VendorErr != 0 {
		t.Errorf("vendor errors %d, %d", got[0].VendorErr, got[1].VendorErr)
	}
	refused(t, got[1].Err(), unix.EMSGSIZE, "active MTU of 2048 bytes")
}

// Statistics are one list, can be printed, and outlive the device.
func TestStatisticsAfterClose(t *testing.T) {
	w := newStillPair(t)
	a := w.a
	a.post(a.send(1, a.ah("10.0.0.2"), w.b, a.piece(0, 10)))
	w.run()
	before, err := a.device.Statistics()
	check(t, err)
	names := map[string]bool{}
	for _, c := range before.All() {
		if names[c.Place+c.Name] {
			t.Errorf("%s %s is there twice", c.Place, c.Name)
		}
		names[c.Place+c.Name] = true
	}
	if text := before.String(); text != "engine sent 1, engine sent_bytes 10" {
		t.Errorf("%q", text)
	}
	check(t, a.device.Close())
	after, err := a.device.Statistics()
	check(t, err)
	if after != before {
		t.Errorf("after Close %v, before %v", after, before)
	}
	if text := (Statistics{}).String(); text != "all counters are 0" {
		t.Errorf("%q", text)
	}
}

// Two devices, one after the other, do not number their queue pairs alike.
func TestQPNumbersStartAnywhere(t *testing.T) {
	first := map[wire.QPN]bool{}
	for range 8 {
		numbers := newQPNumbers()
		first[numbers.take(func(wire.QPN) bool { return true })] = true
	}
	if len(first) < 4 {
		t.Errorf("8 devices began with %d numbers", len(first))
	}
}
