// SPDX-License-Identifier: Apache-2.0

package server

import (
	"os"
	"slices"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/admin"
)

// monitor is a program that waits for events.
type monitor struct {
	*admin.View
	unread []proto.Event
	lost   uint64
}

// hear is a monitor of a user.
func (d *daemon) hear(t *testing.T, uid uint32) *monitor {
	m := &monitor{View: d.looker(uid)}
	check(t, m.Monitor())
	return m
}

// read waits for events, and returns how many there are unread.
func (m *monitor) read(t *testing.T) int {
	t.Helper()
	g, err := m.NextEvents(guard(t))
	check(t, err)
	if _, err := proto.NextEvents.EncodeGrant(1, &g, nil); err != nil {
		t.Fatal(err)
	}
	m.unread, m.lost = append(m.unread, g.Events...), m.lost+g.Lost
	return len(m.unread)
}

// next waits for the next event.
func (m *monitor) next(t *testing.T) proto.Event {
	t.Helper()
	if len(m.unread) == 0 {
		m.read(t)
	}
	e := m.unread[0]
	m.unread = m.unread[1:]
	return e
}

// breakQP posts a send from memory that is not there.
func (p *program) breakQP() {
	p.Helper()
	bad := p.mr.SGE(0, 8)
	bad.LKey++
	check(p, p.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{bad}, AH: p.ah(addressesB[0]), RemoteQPN: 5, RemoteQKey: 1}}))
}

// A monitor gets events of clients that connect and disconnect, of devices, and of queue pairs that fail, though their
// programs do not request events.
func TestMonitor(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	m := r.a.hear(t, 0)
	p := newProgram(t, r.a.dial(t))
	opened := m.next(t)
	if opened.Kind != proto.ClientOpened || opened.Device != "a" || opened.PID != uint32(os.Getpid()) || opened.Command == "" || opened.Time == 0 {
		t.Errorf("%+v", opened)
	}
	p.breakQP()
	if e := m.next(t); e.Kind != proto.QPFailed || e.State != verbs.QPStateSQE || e.Number != uint32(p.qp.Number()) || e.Client != opened.Client {
		t.Errorf("%+v", e)
	}
	r.a.NoteDeviceEvent("a", verbs.EventPortErr)
	if e := m.next(t); e.Kind != proto.DeviceEvent || e.Type != verbs.EventPortErr || e.Client != 0 {
		t.Errorf("%+v", e)
	}
	check(t, p.ctx.Close())
	if e := m.next(t); e.Kind != proto.ClientClosed || e.Client != opened.Client || e.Command != opened.Command {
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
	m := r.a.hear(t, 0)
	check(t, qp.PostRecv([]verbs.RecvWR{{ID: 1, SGList: []verbs.SGE{p.mr.SGE(0, 64)}}, {ID: 2, SGList: []verbs.SGE{p.mr.SGE(64, 64)}}}))
	check(t, qp.Modify(&verbs.QPAttr{State: verbs.QPStateErr}, verbs.QPAttrState))
	shown := listed(t, m.View, proto.CQs)
	known := func(e proto.Event) bool {
		return slices.ContainsFunc(shown, func(o proto.ClientObject) bool {
			return uint32(o.Handle) == e.Number && o.Client == e.Client && o.Failed
		})
	}
	if e := m.next(t); e.Kind != proto.ObjectEvent || e.Object != proto.CQs || e.Type != verbs.EventCQErr || !known(e) {
		t.Errorf("%+v", e)
	}
	if e, err := p.ctx.GetAsyncEvent(guard(t)); err != nil || e.Type != verbs.EventCQErr {
		t.Errorf("%+v, %v", e, err)
	}
}

// Other users get no events of a user's clients; a slow reader loses events, which are counted.
func TestMonitorsAreApartAndBounded(t *testing.T) {
	r := newRig(t, anyone)
	r.b.dial(t) // it serves before the test is over
	stranger, slow := r.a.hear(t, 12345), r.a.hear(t, 0)
	newProgram(t, r.a.dial(t))
	for range admin.MaxEvents {
		r.a.NoteDeviceEvent("a", verbs.EventPortActive)
	}
	if n := stranger.read(t); n != proto.MaxEvents || stranger.unread[0].Kind != proto.DeviceEvent || stranger.lost != 0 {
		t.Errorf("a stranger hears %d events, %+v, and has lost %d", n, stranger.unread[0], stranger.lost)
	}
	for slow.read(t) < admin.MaxEvents {
	}
	if n := len(slow.unread); n != admin.MaxEvents || slow.lost != 1 {
		t.Errorf("%d events and %d lost, want %d and 1", n, slow.lost, admin.MaxEvents)
	}
	stranger.Close()
	slow.Close()
	if r.a.admin.HasMonitors() {
		t.Error("events are queued without a monitor")
	}
}
