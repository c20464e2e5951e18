// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/internal/errtest"
	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/proto"
	"github.com/roced/roced/verbs/server/peer"
)

var check, guard = errtest.Check, waittest.Guard

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

// network is two cards on an in-memory network, with a program each.
type network struct {
	cards    [2]*hca.Card
	programs [2]*program
}

// program is a program of the tests with a UD queue pair.
type program struct {
	*testing.T
	pd *verbs.PD
	mr *verbs.MR
	cq *verbs.CQ
	qp *verbs.QP
}

const testQKey = 0x1234

var addresses = [2]netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}

func newNetwork(t *testing.T) *network {
	t.Helper()
	a, b, err := hca.OpenPair(addresses[:1], addresses[1:])
	check(t, err)
	t.Cleanup(func() { check(t, errors.Join(a.Close(), b.Close())) })
	n := &network{cards: [2]*hca.Card{a, b}}
	for i, card := range n.cards {
		session, err := card.NewSession(hca.SessionConfig{})
		check(t, err)
		ctx, err := verbs.Open(session)
		check(t, err)
		t.Cleanup(func() { check(t, ctx.Close()) })
		p := &program{T: t}
		p.pd, err = ctx.AllocPD()
		check(t, err)
		p.mr, err = p.pd.AllocMR(1<<16, verbs.AccessLocalWrite)
		check(t, err)
		p.cq, err = ctx.CreateCQ(256)
		check(t, err)
		p.qp, err = p.pd.CreateQP(&verbs.QPInitAttr{Type: verbs.QPTypeUD, SendCQ: p.cq, RecvCQ: p.cq, Cap: verbs.QPCap{MaxSendWR: 64, MaxRecvWR: 64}})
		check(t, err)
		check(t, p.qp.Activate(testQKey))
		n.programs[i] = p
	}
	return n
}

// send sends 8 bytes from the first program to the second, and waits until they are sent.
func (n *network) send(key verbs.QKey) {
	a, b := n.programs[0], n.programs[1]
	a.Helper()
	ah, err := a.pd.CreateAH(guard(a), &verbs.AHAttr{Port: 1, GRH: verbs.GlobalRoute{DGID: verbs.GIDFromAddr(addresses[1])}})
	check(a, err)
	check(a, a.qp.PostSend([]verbs.SendWR{{Opcode: verbs.WRSend, Flags: verbs.SendSignaled, SGList: []verbs.SGE{a.mr.SGE(0, 8)}, AH: ah, RemoteQPN: b.qp.Number(), RemoteQKey: key}}))
	a.completion()
}

// exchange is send, which the second program receives.
func (n *network) exchange() {
	b := n.programs[1]
	b.Helper()
	check(b, b.qp.PostRecv([]verbs.RecvWR{{SGList: []verbs.SGE{b.mr.SGE(1024, 1024)}}}))
	n.send(testQKey)
	b.completion()
}

func (p *program) completion() {
	p.Helper()
	var wcs [1]verbs.WC
	_, err := p.cq.Wait(guard(p), wcs[:])
	check(p, err)
	check(p, wcs[0].Err())
}

// view is the view of a user's program on the network's cards, called "a" and "b", and a device of many hosts.
func (n *network) view(uid uint32) *View {
	find := func(_ *peer.Peer, name string) (Device, error) {
		switch name {
		case "a":
			return Device{Name: name, Source: n.cards[0]}, nil
		case "b":
			return Device{Name: name, Source: n.cards[1]}, nil
		case "many":
			return Device{Name: name, Source: nil}, nil
		}
		return Device{}, verbs.ErrInvalid
	}
	users := peer.NewUsers(peer.Limits{}, "")
	return NewService(users, find).View(NewClient(&peer.Peer{UID: uid}, time.Now()))
}

// TestCapture: both ends of a message capture it, with what became of it; filters keep others out.
func TestCapture(t *testing.T) {
	n := newNetwork(t)
	a, b := n.programs[0], n.programs[1]
	begin := func(of string, q proto.CaptureRequest) *hca.Capture {
		q.Device = of
		c, err := n.view(0).openCapture(q)
		check(t, err)
		t.Cleanup(c.Close)
		return c
	}
	out, in := begin("a", proto.CaptureRequest{}), begin("b", proto.CaptureRequest{Snap: 20})
	from, to := begin("b", proto.CaptureRequest{QPN: a.qp.Number()}), begin("a", proto.CaptureRequest{QPN: b.qp.Number()})
	others := []*hca.Capture{
		begin("b", proto.CaptureRequest{QPN: a.qp.Number() + 1}), begin("b", proto.CaptureRequest{Group: verbs.GID{0: 0xff, 15: 1}}),
	}
	n.exchange()
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
	n.exchange()
	if len(out.Packets()) != 0 {
		t.Error("a capture that has been closed goes on")
	}
}

// TestCaptureOfDrops: a message that is dropped has the counter's name.
func TestCaptureOfDrops(t *testing.T) {
	n := newNetwork(t)
	in, err := n.view(0).openCapture(proto.CaptureRequest{Device: "b"})
	check(t, err)
	defer in.Close()
	send := func(key verbs.QKey) string {
		n.send(key)
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

// TestWhoMayCapture: packets are those of all users, so only programs that see all may capture them.
func TestWhoMayCapture(t *testing.T) {
	n := newNetwork(t)
	for _, row := range []struct {
		uid    uint32
		device string
		want   error
	}{{12345, "a", verbs.ErrPermission}, {0, "none", verbs.ErrInvalid}, {0, "many", verbs.ErrUnsupported}} {
		if _, err := n.view(row.uid).StartCapture(proto.CaptureRequest{Device: row.device}); !errors.Is(err, row.want) {
			t.Errorf("user %d, device %s: %v, want %v", row.uid, row.device, err, row.want)
		}
	}
}
