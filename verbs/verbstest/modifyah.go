// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

var modifyAHTests = []rig.Test{
	{Name: "query AH", Run: queryAH},
	{Name: "modify AH", Run: modifyAH},
	{Name: "modify AH refuses", Run: modifyAHRefuses},
	{Name: "modify AH while requests wait", Run: modifyAHWhileReferredTo},
	{Name: "modify AH under traffic", Run: modifyAHUnderTraffic},
	{Name: "life cycles of AHs at once", Run: lifeCyclesOfAHs},
}

// queryAH checks that Query returns the requested attributes, and the effective hop limit instead of 0.
func queryAH(t *testing.T, w *rig.World) {
	s := w.A
	route := s.Route(w.B.End.IPv4)
	route.GRH.HopLimit = 0
	route.GRH.TrafficClass, route.GRH.FlowLabel, route.SL = 0x20, 77, 3
	ah, err := s.PD.CreateAH(rig.Guard(t), route)
	rig.Check(t, err)
	attr, err := ah.Query()
	rig.Check(t, err)
	w.B.Receive(0)
	s.Post(s.Send(1, ah, w.B.QP))
	s.Expect(rig.OK(1))
	grh, _ := w.B.Received(w.B.Expect(rig.OK(0))[0])
	if attr.GRH.HopLimit == 0 || attr.GRH.HopLimit != grh.HopLimit() {
		t.Errorf("hop limit %d, packets have %d", attr.GRH.HopLimit, grh.HopLimit())
	}
	if attr.GRH.HopLimit = 0; attr != *route {
		t.Errorf("%+v, want %+v", attr, *route)
	}
	rig.Check(t, ah.Close())
	_, err = ah.Query()
	rig.Refused(t, err, verbs.ErrObjectClosed, "AH")
}

// modifyAH changes the address of a handle to each kind of address and to a group. Packets must have all of its
// attributes.
func modifyAH(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(a.End.IPv4)
	rig.Check(t, b.QP.AttachMcast(rig.GID(rig.GroupV4), 0))
	b.Join(rig.GroupV4)
	for i, dest := range append(b.End.Addresses(), rig.GroupV4, b.End.IPv4) {
		route := a.Route(dest)
		route.GRH.HopLimit, route.GRH.TrafficClass = uint8(10+i), uint8(i<<2)
		rig.Check(t, ah.Modify(rig.Guard(t), route))
		if attr, err := ah.Query(); attr != *route || err != nil {
			t.Errorf("%+v (%v), want %+v", attr, err, *route)
		}
		b.Receive(0)
		wr := a.Send(1, ah, b.QP)
		if dest.IsMulticast() {
			wr.RemoteQPN = verbs.MulticastQPN
		}
		a.Post(wr)
		a.Expect(rig.OK(1))
		grh, _ := b.Received(b.Expect(rig.OK(0))[0])
		if grh.DGID() != rig.GID(dest) || grh.HopLimit() != uint8(10+i) || grh.TrafficClass() != uint8(i<<2) {
			t.Errorf("a packet to %v with hop limit %d, want %v", grh.DGID(), grh.HopLimit(), dest)
		}
	}
}

// modifyAHRefuses checks that refused changes have no effect on the handle.
func modifyAHRefuses(t *testing.T, w *rig.World) {
	s := w.A
	good := *s.Route(w.B.End.IPv4)
	pd, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	ah, err := pd.CreateAH(rig.Guard(t), &good)
	rig.Check(t, err)
	for _, row := range []struct {
		change func(a *verbs.AHAttr)
		want   error
	}{
		{func(a *verbs.AHAttr) { a.GRH.DGID = verbs.GID{} }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.Port = 2 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.SL = 8 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.FlowLabel = 1 << 20 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.EmptyLine() }, unix.ENODATA},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = -1 }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.GIDTableLen() }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.SGIDIndex = s.Line(s.End.IPv6) }, unix.EINVAL},
		{func(a *verbs.AHAttr) { a.GRH.DGID = rig.GID(w.Pair.Unreachable) }, unix.EHOSTUNREACH},
	} {
		attr := good
		row.change(&attr)
		rig.Refused(t, ah.Modify(rig.Guard(t), &attr), row.want)
	}
	rig.Refused(t, ah.Modify(rig.Guard(t), nil), unix.EINVAL, "nil")
	var none context.Context
	rig.Refused(t, ah.Modify(none, &good), unix.EINVAL, "context")
	if attr, err := ah.Query(); attr.GRH.DGID != good.GRH.DGID || err != nil {
		t.Errorf("%+v, %v", attr, err)
	}
	rig.Check(t, ah.Close())
	rig.Refused(t, ah.Modify(rig.Guard(t), &good), verbs.ErrObjectClosed, "AH")
	rig.Check(t, pd.Close()) // fails if a refused handle still uses the PD
}

// modifyAHWhileReferredTo checks that waiting requests use the address that the handle has when they are executed.
func modifyAHWhileReferredTo(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	ah := a.AH(b.End.IPv6)
	rig.To(t, a.QP, verbs.QPStateSQD)
	a.Post(a.Send(1, ah, b.QP), a.Send(2, ah, b.QP))
	b.Receive(0, 1)
	rig.Check(t, ah.Modify(rig.Guard(t), a.Route(b.End.IPv4)))
	rig.To(t, a.QP, verbs.QPStateRTS)
	a.Expect(rig.OK(1), rig.OK(2))
	for _, wc := range b.Expect(rig.OK(0), rig.OK(1)) {
		if grh, _ := b.Received(wc); grh.DGID() != rig.GID(b.End.IPv4) || grh.SGID() != rig.GID(a.End.IPv4) {
			t.Errorf("from %v to %v", grh.SGID(), grh.DGID())
		}
	}
}

// modifyAHUnderTraffic changes a handle between two addresses while messages are sent. Each packet must have the
// attributes of one address.
func modifyAHUnderTraffic(t *testing.T, w *rig.World) {
	a, b := w.A, w.B
	routes := [2]verbs.AHAttr{*a.Route(b.End.IPv4), *a.Route(b.End.IPv6)}
	routes[0].GRH.HopLimit, routes[0].GRH.TrafficClass = 44, 4
	routes[1].GRH.HopLimit, routes[1].GRH.TrafficClass = 66, 8
	ah, err := a.PD.CreateAH(rig.Guard(t), &routes[0])
	rig.Check(t, err)
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
		fmt.Sprint(rig.GID(a.End.IPv4), rig.GID(b.End.IPv4), 44, 4, verbs.NetworkIPv4): true,
		fmt.Sprint(rig.GID(a.End.IPv6), rig.GID(b.End.IPv6), 66, 8, verbs.NetworkIPv6): true,
	}
	for range 500 {
		b.Receive(0)
		a.Post(a.Send(1, ah, b.QP))
		a.Expect(rig.OK(1))
		wc := b.Expect(rig.OK(0))[0]
		grh, _ := b.Received(wc)
		if got := fmt.Sprint(grh.SGID(), grh.DGID(), grh.HopLimit(), grh.TrafficClass(), wc.NetworkHeader); !whole[got] {
			t.Fatalf("a mixture: %s", got)
		}
	}
	close(stop)
	changes.Wait()
}

// lifeCyclesOfAHs creates, changes, queries and closes handles from several goroutines, which share some. Each call
// must succeed or report a closed handle.
func lifeCyclesOfAHs(t *testing.T, w *rig.World) {
	s := w.A
	pd, err := s.Ctx.AllocPD()
	rig.Check(t, err)
	here, there := s.Route(s.End.IPv4), s.Route(w.B.End.IPv4)
	allowed := func(err error) {
		if err != nil && verbs.KindOf(err) != verbs.ErrObjectClosed {
			t.Error(err)
		}
	}
	for range 20 {
		ah, err := pd.CreateAH(rig.Guard(t), there)
		rig.Check(t, err)
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
			all.Go(func() { allowed(rig.Closed(pd.CreateAH(context.Background(), there))) })
			all.Go(func() { allowed(ah.Close()) })
		}
		all.Wait()
	}
	rig.Check(t, pd.Close()) // fails if a handle still uses the PD
}
