// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca/network"
)

// idsOn returns an event channel on a station.
func idsOn(s *station) *cm.EventChannel {
	s.Helper()
	c, err := cm.CreateEventChannel(s.ctx)
	check(s, err)
	s.Cleanup(func() { _ = c.Close() })
	return c
}

func newID(t testing.TB, c *cm.EventChannel) *cm.ID {
	t.Helper()
	id, err := c.CreateID(cm.PortSpaceUDP, nil)
	check(t, err)
	return id
}

// nothingLeft checks that a card has no ids, ports and memberships.
func (card *Card) nothingLeft(t testing.TB) {
	t.Helper()
	used := card.Used()
	if used.IDs != 0 || used.Memberships != 0 || card.manager.Ports.Len() != 0 || card.manager.Users() != 0 {
		t.Errorf("left: %+v, %d ports, %d users of the connection manager", used, card.manager.Ports.Len(), card.manager.Users())
	}
}

// 10,000 ids are created, join and are destroyed, some before their event has come: nothing is left.
func TestManyIDs(t *testing.T) {
	w := newWirePair(t)
	c := idsOn(w.a)
	before := runtime.NumGoroutine()
	var ids []*cm.ID
	for n := range 10000 {
		id := newID(t, c)
		check(t, id.Bind(netip.AddrPortFrom(address("10.0.0.1"), 0)))
		check(t, id.JoinMulticast(netip.AddrFrom4([4]byte{239, 1, byte(n >> 8), byte(n)}), cm.JoinStateFullMember, n))
		ids = append(ids, id)
	}
	for range len(ids) / 2 {
		_, err := c.Expect(guard(t), cm.EventMulticastJoin)
		check(t, err)
	}
	for _, id := range ids {
		check(t, id.Close())
	}
	w.a.device.nothingLeft(t)
	check(t, c.Close())
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

// All operations of a program on ids at once, with ids closed at any moment, for the race detector. The service is on
// another card.
func TestIDsUnderLoad(t *testing.T) {
	w := newWirePair(t)
	service, server := newID(t, idsOn(w.b)), sync.WaitGroup{}
	check(t, service.Bind(netip.MustParseAddrPort("0.0.0.0:7174")))
	check(t, service.Listen(0))
	served := idsOn(w.b)
	check(t, service.Migrate(served))
	server.Go(func() {
		for {
			event, err := served.Get(guard(t))
			if err != nil {
				return
			}
			_ = event.ID.Accept(&cm.ConnParam{QPN: 17})
			_ = event.ID.Close()
		}
	})
	var all sync.WaitGroup
	for player := range 4 {
		c := idsOn(w.a)
		all.Go(func() { w.a.play(t, c, uint64(player)) })
	}
	all.Wait()
	check(t, service.Close())
	check(t, served.Close())
	server.Wait()
	w.a.device.nothingLeft(t)
}

// play creates ids and closes each at a different point of its life.
func (s *station) play(t *testing.T, c *cm.EventChannel, player uint64) {
	peer := netip.MustParseAddrPort("10.0.0.2:7174")
	for n := range 200 {
		id := newID(t, c)
		steps := []func() error{
			func() error { return id.ResolveAddr(netip.AddrPort{}, peer, time.Minute) },
			func() error { return next(t, c, id, cm.EventAddrResolved) },
			func() error { return id.JoinMulticast(address(groupV4), cm.JoinStateFullMember, player) },
			func() error { return id.LeaveMulticast(address(groupV4)) },
			func() error { return id.JoinMulticast(address(groupV4), cm.JoinStateFullMember, player) },
			func() error { return next(t, c, id, cm.EventMulticastJoin) },
			func() error { return id.ResolveRoute() },
			func() error { return next(t, c, id, cm.EventRouteResolved) },
			func() error { return id.Connect(nil) },
			func() error { return next(t, c, id, cm.EventEstablished) },
		}
		for _, step := range steps[:n%(len(steps)+1)] {
			if err := step(); err != nil {
				t.Error(err)
				break
			}
		}
		check(t, id.Close())
	}
}

func next(t *testing.T, c *cm.EventChannel, id *cm.ID, want cm.EventType) error {
	event, err := c.Expect(guard(t), want)
	if err == nil && event.ID != id {
		err = fmt.Errorf("%v of another id", want)
	}
	return err
}

// A thousand clients send a request to one service: each gets its response.
func TestManyRequests(t *testing.T) {
	const clients = 1000
	w := newWirePair(t)
	server, c := idsOn(w.b), idsOn(w.a)
	service := newID(t, server)
	check(t, service.Bind(netip.MustParseAddrPort("0.0.0.0:7174")))
	check(t, service.Listen(0))
	var answering sync.WaitGroup
	answering.Go(func() {
		for range clients {
			event, err := server.Expect(guard(t), cm.EventConnectRequest)
			check(t, err)
			check(t, event.ID.Accept(&cm.ConnParam{QPN: 17}))
			check(t, event.ID.Close())
		}
	})
	started := time.Now()
	for range clients {
		id := newID(t, c)
		check(t, id.ResolveAddr(netip.AddrPort{}, netip.MustParseAddrPort("10.0.0.2:7174"), time.Minute))
		check(t, next(t, c, id, cm.EventAddrResolved))
		check(t, id.ResolveRoute())
		check(t, next(t, c, id, cm.EventRouteResolved))
		check(t, id.Connect(nil))
		check(t, next(t, c, id, cm.EventEstablished))
		check(t, id.Close())
	}
	answering.Wait()
	t.Logf("%d clients in %v", clients, time.Since(started))
	check(t, service.Close())
	w.b.device.nothingLeft(t)
	w.a.device.nothingLeft(t)
}

// An id whose device is removed gets an event for it; then the channel returns the cause.
func TestDeviceRemoval(t *testing.T) {
	w := newWirePair(t)
	c := idsOn(w.a)
	bound, idle := newID(t, c), newID(t, c)
	check(t, bound.Bind(netip.AddrPortFrom(address("10.0.0.1"), 0)))
	w.a.device.fail(network.ErrGone)
	event, err := c.Expect(guard(t), cm.EventDeviceRemoval)
	check(t, err)
	if event.ID != bound {
		t.Error("event of an id that is not bound")
	}
	refused(t, event.Err(), verbs.ErrDeviceFatal)
	_, err = c.Get(guard(t))
	refused(t, err, verbs.ErrDeviceFatal)
	refused(t, bound.ResolveRoute(), verbs.ErrDeviceFatal)
	check(t, bound.Close())
	check(t, idle.Close())
	check(t, c.Close())
}
