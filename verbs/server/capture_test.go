package server

import (
	"errors"
	"testing"
	"time"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
)

// tapped waits for a capture's next packet.
func tapped(t *testing.T, c *hca.Capture) hca.CapturedPacket {
	t.Helper()
	select {
	case p := <-c.Packets():
		return p
	case <-time.After(waittest.Limit):
		t.Fatal("no packet comes")
		return hca.CapturedPacket{}
	}
}

// Both ends of a message capture it, with what became of it; filters keep others out.
func TestCapture(t *testing.T) {
	r := newRig(t, anyone)
	a, b := newProgram(t, r.a.dial(t)), newProgram(t, r.b.dial(t))
	begin := func(d *daemon, of string, q proto.CaptureRequest) *hca.Capture {
		q.Device = of
		c, err := d.looker(0).capture(q)
		check(t, err)
		t.Cleanup(c.Close)
		return c
	}
	out, in := begin(r.a, "a", proto.CaptureRequest{}), begin(r.b, "b", proto.CaptureRequest{Snap: 20})
	from, to := begin(r.b, "b", proto.CaptureRequest{QPN: a.qp.Number()}), begin(r.a, "a", proto.CaptureRequest{QPN: b.qp.Number()})
	others := []*hca.Capture{
		begin(r.b, "b", proto.CaptureRequest{QPN: a.qp.Number() + 1}), begin(r.b, "b", proto.CaptureRequest{Group: verbs.GID{0: 0xff, 15: 1}}),
	}
	a.exchange(a.ah(addressesB[0]), b, "captured")
	if p := tapped(t, out); !p.Out || p.Verdict() != "sent" || p.Dest != b.qp.Number() || len(p.Frame) != p.Length {
		t.Errorf("%+v: %s", p, p.Verdict())
	}
	if p := tapped(t, in); p.Out || p.Delivered != 1 || len(p.Frame) != 20 || p.Length < 60 {
		t.Errorf("%+v: %s", p, p.Verdict())
	}
	for _, c := range []*hca.Capture{from, to} {
		if p := tapped(t, c); p.Dest != b.qp.Number() {
			t.Errorf("%+v", p)
		}
	}
	for _, c := range others {
		if len(c.Packets()) != 0 {
			t.Errorf("%+v", <-c.Packets())
		}
	}
	out.Close()
	a.exchange(a.ah(addressesB[0]), b, "not captured")
	if len(out.Packets()) != 0 {
		t.Error("a capture that has been closed goes on")
	}
}

// A message that is dropped says the counter's name.
func TestCaptureOfDrops(t *testing.T) {
	r := newRig(t, anyone)
	a, b := newProgram(t, r.a.dial(t)), newProgram(t, r.b.dial(t))
	in, err := r.b.looker(0).capture(proto.CaptureRequest{Device: "b"})
	check(t, err)
	defer in.Close()
	send := func(key verbs.QKey) string {
		check(t, a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, AH: a.ah(addressesB[0]), RemoteQPN: b.qp.Number(), RemoteQKey: key}}))
		a.completion()
		p := tapped(t, in)
		return p.Verdict()
	}
	if got := send(1); got != "dropped: qkey" {
		t.Error(got)
	}
	if got := send(testQKey); got != "dropped: no_receive" {
		t.Error(got)
	}
}

// Packets are all users', so only those who see all may have them.
func TestWhoMayCapture(t *testing.T) {
	r := newRig(t, anyone)
	r.a.dial(t) // both serve before the test is over
	r.b.dial(t)
	for _, row := range []struct {
		uid    uint32
		device string
		want   error
	}{{12345, "a", verbs.ErrPermission}, {0, "none", verbs.ErrInvalid}, {0, "many", verbs.ErrUnsupported}} {
		check(t, r.a.SetDevices(r.cards[0], &manyHosts{r.cards[:]}))
		if _, err := r.a.looker(row.uid).capture(proto.CaptureRequest{Device: row.device}); !errors.Is(err, row.want) {
			t.Errorf("user %d, device %s: %v, want %v", row.uid, row.device, err, row.want)
		}
	}
}
