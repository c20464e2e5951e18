package server

import (
	"os"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
)

// hear is a monitor of a user.
func (d *daemon) hear(uid uint32) (c *connection, m *monitor) {
	c = d.looker(uid)
	return c, d.monitors.join(c.peer)
}

// next waits for the next event.
func (c *connection) next(t *testing.T, m *monitor) proto.Event {
	t.Helper()
	for {
		c.server.monitors.mu.Lock()
		if len(m.events) > 0 {
			e := m.events[0]
			m.events = m.events[1:]
			c.server.monitors.mu.Unlock()
			return e
		}
		c.server.monitors.mu.Unlock()
		select {
		case <-m.ready:
		case <-c.server.monitors.noticed:
			c.server.reportNoticed()
		case <-guard(t).Done():
			t.Fatal("no event comes")
		}
	}
}

// breakQP posts a send from memory that is not there.
func (p *program) breakQP() {
	p.Helper()
	bad := p.mr.SGE(0, 8)
	bad.LKey++
	check(p, p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{bad}, AH: p.ah(addressesB[0]), RemoteQPN: 5, RemoteQKey: 1}}))
}

// A monitor hears of clients that come and go, of devices, and of queue pairs that fail, though their
// programs do not ask for events.
func TestMonitor(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	look, m := r.a.hear(0)
	p := newProgram(t, r.a.dial(t))
	opened := look.next(t, m)
	if opened.Kind != proto.ClientOpened || opened.Device != "a" || opened.PID != uint32(os.Getpid()) || opened.Command == "" || opened.Time == 0 {
		t.Errorf("%+v", opened)
	}
	p.breakQP()
	if e := look.next(t, m); e.Kind != proto.QPFailed || e.State != verbs.QPStateSQE || e.Number != uint32(p.qp.Number()) || e.Client != opened.Client {
		t.Errorf("%+v", e)
	}
	r.a.NoteDeviceEvent("a", verbs.EventPortErr)
	if e := look.next(t, m); e.Kind != proto.DeviceEvent || e.Type != verbs.EventPortErr || e.Client != 0 {
		t.Errorf("%+v", e)
	}
	check(t, p.ctx.Close())
	if e := look.next(t, m); e.Kind != proto.ClientClosed || e.Client != opened.Client || e.Command != opened.Command {
		t.Errorf("%+v", e)
	}
}

// A CQ that is overrun is told to monitors and to its program.
func TestMonitorOfObjects(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	p := newProgram(t, r.a.dial(t))
	small, err := p.ctx.CreateCQ(1)
	check(t, err)
	p.cq = small
	qp := p.newQP()
	look, m := r.a.hear(0)
	check(t, qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{p.mr.SGE(0, 64)}}, {ID: 2, SGList: []verbs.SGE{p.mr.SGE(64, 64)}}}))
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState))
	shown := look.listed(t, proto.CQs)
	known := func(e proto.Event) bool {
		return slices.ContainsFunc(shown, func(o proto.ClientObject) bool {
			return uint32(o.Handle) == e.Number && o.Client == e.Client && o.Failed
		})
	}
	if e := look.next(t, m); e.Kind != proto.ObjectEvent || e.Object != proto.CQs || e.Type != verbs.EventCQErr || !known(e) {
		t.Errorf("%+v", e)
	}
	if e, err := p.ctx.GetAsyncEvent(guard(t)); err != nil || e.Type != verbs.EventCQErr {
		t.Errorf("%+v, %v", e, err)
	}
}

// Others do not hear of a user's clients; who does not read loses events, which are counted.
func TestMonitorsAreApartAndBounded(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	_, stranger := r.a.hear(12345)
	_, slow := r.a.hear(0)
	newProgram(t, r.a.dial(t))
	for range maxEvents {
		r.a.NoteDeviceEvent("a", verbs.EventPortActive)
	}
	g := r.a.monitors.take(stranger)
	if len(g.Events) != proto.MaxEvents || g.Events[0].Kind != proto.DeviceEvent || g.Lost != 0 {
		t.Errorf("a stranger hears %+v, and has lost %d", g.Events[0], g.Lost)
	}
	total, lost := 0, uint64(0)
	for g := r.a.monitors.take(slow); len(g.Events) > 0; g = r.a.monitors.take(slow) {
		if _, err := proto.NextEvents.EncodeGrant(1, &g, nil); err != nil {
			t.Fatal(err)
		}
		total += len(g.Events)
		lost += g.Lost
	}
	if total != maxEvents || lost != 1 {
		t.Errorf("%d events and %d lost, want %d and 1", total, lost, maxEvents)
	}
	r.a.monitors.leave(stranger)
	r.a.monitors.leave(slow)
	if r.a.monitors.any.Load() {
		t.Error("events are kept for nobody")
	}
}
