package verbstest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"golang.org/x/sys/unix"
)

var modifyAHTests = []test{
	{name: "query AH", run: queryAH},
	{name: "modify AH", run: modifyAH},
	{name: "modify AH refuses", run: modifyAHRefuses},
	{name: "modify AH while requests wait", run: modifyAHWhileReferredTo},
	{name: "modify AH under traffic", run: modifyAHUnderTraffic},
	{name: "life cycles of AHs at once", run: lifeCyclesOfAHs},
}

// What a handle was asked for with comes back; for a hop limit of 0 the one that packets have.
func queryAH(t *testing.T, w *world) {
	s := w.a
	route := s.route(w.b.end.IPv4)
	route.GRH.HopLimit = 0
	route.GRH.TrafficClass, route.GRH.FlowLabel, route.SL = 0x20, 77, 3
	ah, err := s.pd.CreateAH(guard(t), route)
	check(t, err)
	attr, err := ah.Query()
	check(t, err)
	w.b.receive(0)
	s.post(s.send(1, ah, w.b.qp))
	s.expect(ok(1))
	grh, _ := w.b.received(w.b.expect(ok(0))[0])
	if attr.GRH.HopLimit == 0 || attr.GRH.HopLimit != grh.HopLimit() {
		t.Errorf("hop limit %d, packets have %d", attr.GRH.HopLimit, grh.HopLimit())
	}
	if attr.GRH.HopLimit = 0; attr != *route {
		t.Errorf("%+v, want %+v", attr, *route)
	}
	check(t, ah.Close())
	_, err = ah.Query()
	refused(t, err, verbs.ErrObjectClosed, "AH")
}

// A handle is turned to other addresses, of each kind and of a group, and back; everything of the
// attributes counts.
func modifyAH(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(a.end.IPv4)
	check(t, b.qp.AttachMcast(gid(groupV4), 0))
	b.join(groupV4)
	for i, dest := range append(b.end.addresses(), groupV4, b.end.IPv4) {
		route := a.route(dest)
		route.GRH.HopLimit, route.GRH.TrafficClass = uint8(10+i), uint8(i<<2)
		check(t, ah.Modify(guard(t), route))
		if attr, err := ah.Query(); attr != *route || err != nil {
			t.Errorf("%+v (%v), want %+v", attr, err, *route)
		}
		b.receive(0)
		wr := a.send(1, ah, b.qp)
		if dest.IsMulticast() {
			wr.RemoteQPN = verbs.MulticastQPN
		}
		a.post(wr)
		a.expect(ok(1))
		grh, _ := b.received(b.expect(ok(0))[0])
		if grh.DGID() != gid(dest) || grh.HopLimit() != uint8(10+i) || grh.TrafficClass() != uint8(i<<2) {
			t.Errorf("a packet to %v with hop limit %d, want %v", grh.DGID(), grh.HopLimit(), dest)
		}
	}
}

// What is refused leaves the handle as it was.
func modifyAHRefuses(t *testing.T, w *world) {
	s := w.a
	good := *s.route(w.b.end.IPv4)
	pd, err := s.ctx.AllocPD()
	check(t, err)
	ah, err := pd.CreateAH(guard(t), &good)
	check(t, err)
	for _, row := range []struct {
		change func(a *verbs.AHAttr)
		want   error
	}{
		{func(a *verbs.AHAttr) { a.GRH.DGID = verbs.GID{} }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.Port = 2 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.SL = 8 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.FlowLabel = 1 << 20 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.emptyLine() }, unix.ENODATA},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = -1 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.gidTableLen() }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.line(s.end.IPv6) }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.DGID = gid(w.pair.Unreachable) }, unix.EHOSTUNREACH},
	} {
		attr := good
		row.change(&attr)
		refused(t, ah.Modify(guard(t), &attr), row.want)
	}
	refused(t, ah.Modify(guard(t), nil), unix.EINVAL, "nil")
	var none context.Context
	refused(t, ah.Modify(none, &good), unix.EINVAL, "context")
	if attr, err := ah.Query(); attr.GRH.DGID != good.GRH.DGID || err != nil {
		t.Errorf("%+v, %v", attr, err)
	}
	check(t, ah.Close())
	refused(t, ah.Modify(guard(t), &good), verbs.ErrObjectClosed, "AH")
	check(t, pd.Close()) // what was refused does not use it
}

// Requests that wait go to the address that the handle has when they run.
func modifyAHWhileReferredTo(t *testing.T, w *world) {
	a, b := w.a, w.b
	ah := a.ah(b.end.IPv6)
	to(t, a.qp, verbs.QPStateSQD)
	a.post(a.send(1, ah, b.qp), a.send(2, ah, b.qp))
	b.receive(0, 1)
	check(t, ah.Modify(guard(t), a.route(b.end.IPv4)))
	to(t, a.qp, verbs.QPStateRTS)
	a.expect(ok(1), ok(2))
	for _, wc := range b.expect(ok(0), ok(1)) {
		if grh, _ := b.received(wc); grh.DGID() != gid(b.end.IPv4) || grh.SGID() != gid(a.end.IPv4) {
			t.Errorf("from %v to %v", grh.SGID(), grh.DGID())
		}
	}
}

// While messages are sent, their handle is turned to and fro: all of each packet's header is of one of
// the two addresses.
func modifyAHUnderTraffic(t *testing.T, w *world) {
	a, b := w.a, w.b
	routes := [2]verbs.AHAttr{*a.route(b.end.IPv4), *a.route(b.end.IPv6)}
	routes[0].GRH.HopLimit, routes[0].GRH.TrafficClass = 44, 4
	routes[1].GRH.HopLimit, routes[1].GRH.TrafficClass = 66, 8
	ah, err := a.pd.CreateAH(guard(t), &routes[0])
	check(t, err)
	stop := make(chan struct{})
	var changes sync.WaitGroup
	changes.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := ah.Modify(context.Background(), &routes[i%2]); err != nil {
				t.Error(err)
				return
			}
			runtime.Gosched()
		}
	})
	whole := map[string]bool{
		fmt.Sprint(gid(a.end.IPv4), gid(b.end.IPv4), 44, 4, verbs.NetworkIPv4): true,
		fmt.Sprint(gid(a.end.IPv6), gid(b.end.IPv6), 66, 8, verbs.NetworkIPv6): true,
	}
	for range 500 {
		b.receive(0)
		a.post(a.send(1, ah, b.qp))
		a.expect(ok(1))
		wc := b.expect(ok(0))[0]
		grh, _ := b.received(wc)
		if got := fmt.Sprint(grh.SGID(), grh.DGID(), grh.HopLimit(), grh.TrafficClass(), wc.NetworkHeader); !whole[got] {
			t.Fatalf("a mixture: %s", got)
		}
	}
	close(stop)
	changes.Wait()
}

// Handles are made, turned, asked for and closed by several at once, the same ones too: each of these
// works, or says that the handle is closed.
func lifeCyclesOfAHs(t *testing.T, w *world) {
	s := w.a
	pd, err := s.ctx.AllocPD()
	check(t, err)
	here, there := s.route(s.end.IPv4), s.route(w.b.end.IPv4)
	allowed := func(err error) {
		if err != nil && verbs.KindOf(err) != verbs.ErrObjectClosed {
			t.Error(err)
		}
	}
	for range 20 {
		ah, err := pd.CreateAH(guard(t), there)
		check(t, err)
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { allowed(ah.Modify(context.Background(), here)) })
			all.Go(func() { allowed(ah.Modify(context.Background(), there)) })
			all.Go(func() {
				attr, err := ah.Query()
				if allowed(err); err == nil && attr.GRH.DGID != here.GRH.DGID && attr.GRH.DGID != there.GRH.DGID {
					t.Errorf("%+v", attr)
				}
			})
			all.Go(func() { allowed(closed(pd.CreateAH(context.Background(), there))) })
			all.Go(func() { allowed(ah.Close()) })
		}
		all.Wait()
	}
	check(t, pd.Close()) // nothing is left in it
}
