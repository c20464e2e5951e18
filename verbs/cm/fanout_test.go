// SPDX-License-Identifier: Apache-2.0

package cm_test

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/roced/roced/internal/waittest"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca"
	"github.com/roced/roced/verbs/hca/quota"
	"github.com/roced/roced/verbs/provider"
	"golang.org/x/sys/unix"
)

// station is a program with two devices, and a peer on the wire of each.
type station struct {
	left, right         *verbs.Context
	leftPeer, rightPeer *verbs.Context
	channel             *cm.EventChannel
}

func newStation(t *testing.T) *station {
	t.Helper()
	a, b := newNetwork(t), newNetwork(t)
	s := &station{
		left: device(t, a, "left", "10.1.0.1"), leftPeer: device(t, a, "left-peer", "10.1.0.2"),
		right: device(t, b, "right", "10.2.0.1"), rightPeer: device(t, b, "right-peer", "10.2.0.2"),
	}
	s.channel = newChannel(t, s.left, s.right)
	return s
}

// on checks which device an id is on.
func on(t *testing.T, id *cm.ID, want *verbs.Context) {
	t.Helper()
	got, err := id.Device()
	check(t, err)
	if got != want {
		t.Errorf("the id is on another device, or none: %v", got)
	}
}

// The device is chosen by the address to bind to, or by the route.
func TestDeviceIsChosen(t *testing.T) {
	s := newStation(t)
	for own, want := range map[string]*verbs.Context{"10.1.0.1:0": s.left, "10.2.0.1:0": s.right} {
		id := newID(t, s.channel)
		on(t, id, nil)
		check(t, id.SetServiceType(8))
		check(t, id.Bind(addr(own)))
		on(t, id, want)
	}
	for to, want := range map[string]*verbs.Context{"10.1.0.2:1": s.left, "10.2.0.2:1": s.right} {
		for _, own := range []string{"", "0.0.0.0:0"} {
			id := newID(t, s.channel)
			if own != "" {
				check(t, id.Bind(addr(own)))
			}
			check(t, id.ResolveAddr(addr("0.0.0.0:0"), addr(to), waittest.Limit))
			expect(t, s.channel, cm.EventAddrResolved)
			on(t, id, want)
		}
	}
	id := newID(t, s.channel)
	refused(t, id.Bind(addr("10.3.0.1:0")), unix.EADDRNOTAVAIL)
	refused(t, id.ResolveAddr(addr("10.1.0.1:0"), addr("10.2.0.2:1"), waittest.Limit), verbs.ErrUnreachable)
}

// An id that listens at all addresses listens on all devices, at one port.
func TestListenOnAllDevices(t *testing.T) {
	s := newStation(t)
	service := newID(t, s.channel)
	check(t, service.Bind(addr("0.0.0.0:0")))
	check(t, service.Listen(0))
	local, err := service.LocalAddr()
	check(t, err)
	refused(t, service.JoinMulticast(addr("239.1.2.3:0").Addr(), cm.JoinStateFullMember, nil), unix.EINVAL) // on no device
	for to, peer := range map[string]*verbs.Context{"10.1.0.1": s.leftPeer, "10.2.0.1": s.rightPeer} {
		c := newChannel(t, peer)
		client := newID(t, c)
		check(t, client.ResolveAddr(addr("0.0.0.0:0"), addr(to+":1"), waittest.Limit))
		expect(t, c, cm.EventAddrResolved)
		check(t, client.Close())
		client = newID(t, c)
		dest := addr(to + ":0")
		check(t, client.ResolveAddr(addr("0.0.0.0:0"), netip.AddrPortFrom(dest.Addr(), local.Port()), waittest.Limit))
		expect(t, c, cm.EventAddrResolved)
		check(t, client.ResolveRoute())
		expect(t, c, cm.EventRouteResolved)
		check(t, client.Connect(nil))
		asked := expect(t, s.channel, cm.EventConnectRequest)
		if asked.Listener != service {
			t.Error("a request to another id")
		}
		check(t, asked.ID.Accept(&cm.ConnParam{QPN: 17}))
		if answer := expect(t, c, cm.EventEstablished); answer.QPN != 17 {
			t.Errorf("%+v", answer)
		}
		check(t, asked.ID.Close())
	}
}

// A port of all addresses that is taken on one device is not had on the other: the id can be bound again.
func TestPortOfAllDevicesIsTaken(t *testing.T) {
	s := newStation(t)
	other := newID(t, newChannel(t, s.right))
	check(t, other.Bind(addr("10.2.0.1:7174")))
	id := newID(t, s.channel)
	check(t, id.SetAFOnly(true))
	refused(t, id.Bind(addr("0.0.0.0:7174")), unix.EADDRNOTAVAIL)
	check(t, other.Close())
	check(t, id.Bind(addr("0.0.0.0:7174")))
	check(t, id.Close())
	check(t, newID(t, s.channel).Bind(addr("0.0.0.0:7174"))) // nothing is left
}

// The sessions of two programs on one card share its ports.
func TestSessionsSharePorts(t *testing.T) {
	n := newNetwork(t)
	card, _ := newCard(t, n, "host", "10.0.0.1")
	session, err := card.NewSession(hca.SessionConfig{})
	check(t, err)
	first, second := newID(t, newChannel(t, open(t, card))), newID(t, newChannel(t, open(t, session)))
	check(t, first.Bind(addr("10.0.0.1:7174")))
	refused(t, second.Bind(addr("10.0.0.1:7174")), unix.EADDRINUSE)
	stranger, err := card.NewSession(hca.SessionConfig{Quota: quota.New("user stranger", hca.Limits{IDs: 2}, nil)})
	check(t, err)
	c := newChannel(t, open(t, stranger))
	third, fourth := newID(t, c), newID(t, c)
	_, err = c.CreateID(cm.PortSpaceUDP, nil)
	refused(t, err, verbs.ErrLimit)
	check(t, second.SetReuseAddr(true))
	check(t, third.SetReuseAddr(true))
	check(t, fourth.SetReuseAddr(true))
	check(t, third.Bind(addr("10.0.0.1:7175")))
	check(t, fourth.Bind(addr("10.0.0.1:7175")))
	refused(t, second.Bind(addr("10.0.0.1:7175")), unix.EADDRINUSE) // of another user
	refused(t, third.Listen(1), unix.EADDRINUSE)                    // not alone
	check(t, fourth.Close())
	check(t, third.Listen(1))
}

// An event channel goes on when one of its devices is gone; the other's ids work.
func TestDeviceIsRemoved(t *testing.T) {
	s := newStation(t)
	gone, stays := newID(t, s.channel), newID(t, s.channel)
	check(t, gone.Bind(addr("10.1.0.1:0")))
	check(t, stays.Bind(addr("10.2.0.1:0")))
	check(t, s.left.Close())
	check(t, stays.ResolveAddr(addr("0.0.0.0:0"), addr("10.2.0.2:1"), waittest.Limit))
	if event := expect(t, s.channel, cm.EventAddrResolved); event.ID != stays {
		t.Error("the event of another id")
	}
	refused(t, gone.ResolveRoute(), verbs.ErrClosed)
	check(t, newID(t, s.channel).Bind(addr("10.2.0.1:0")))
	check(t, s.right.Close())
	_, err := s.channel.Get(guard(t))
	refused(t, err, verbs.ErrClosed)
}

// dying is a session whose connection ends before the card has told of its ids.
type dying struct {
	provider.Provider
	dead atomic.Bool
}

func (d *dying) Do(ctx context.Context, code provider.Code, request, grant any) error {
	if code == provider.GetCMEvent.Code && d.dead.Load() {
		return verbs.ErrDeviceFatal
	}
	return d.Provider.Do(ctx, code, request, grant)
}

// Each bound id gets the removal of its device, even if the card can no longer report it; then the
// channel ends.
func TestRemovalIsToldByTheProgramsSide(t *testing.T) {
	n := newNetwork(t)
	card, _ := newCard(t, n, "left", "10.0.0.1")
	session, err := card.NewSession(hca.SessionConfig{})
	check(t, err)
	d := &dying{Provider: session}
	ctx, err := verbs.Open(d)
	check(t, err)
	channel, err := cm.CreateEventChannel(ctx)
	check(t, err)
	bound, listening, closed := newID(t, channel), newID(t, channel), newID(t, channel)
	newID(t, channel) // not bound
	check(t, bound.Bind(addr("10.0.0.1:0")))
	check(t, listening.Bind(addr("10.0.0.1:0")))
	check(t, listening.Listen(1))
	everywhere := newID(t, channel) // and so on no device
	check(t, everywhere.Bind(addr("0.0.0.0:0")))
	check(t, everywhere.Listen(1))
	check(t, closed.Bind(addr("10.0.0.1:0")))
	check(t, closed.Close())
	d.dead.Store(true)
	told := map[*cm.ID]bool{}
	for range 2 {
		event := expect(t, channel, cm.EventDeviceRemoval)
		refused(t, event.Err(), verbs.ErrDeviceFatal)
		told[event.ID] = true
	}
	if !told[bound] || !told[listening] {
		t.Errorf("told of %d ids, or of others", len(told))
	}
	_, err = channel.Get(guard(t))
	refused(t, err, verbs.ErrDeviceFatal)
}

// A queue pair that the program has closed itself does not keep the id from being closed.
func TestQPIsClosedByTheProgram(t *testing.T) {
	s := newStation(t)
	id := newID(t, s.channel)
	check(t, id.Bind(addr("10.1.0.1:0")))
	ctx, err := id.Device()
	check(t, err)
	pd, err := ctx.AllocPD()
	check(t, err)
	cq, err := ctx.CreateCQ(4)
	check(t, err)
	qp, err := id.CreateQP(pd, &verbs.QPInitAttr{SendCQ: cq, RecvCQ: cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1, MaxSendSGE: 1, MaxRecvSGE: 1}})
	check(t, err)
	check(t, qp.Close())
	check(t, id.DestroyQP())
	check(t, id.Close())
}
