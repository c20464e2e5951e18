// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	cmapi "github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/hca/ids"
	"github.com/roced/roced/verbs/hca/network"
	"github.com/roced/roced/verbs/provider"
)

// stranger sends connection requests as bare messages.
type stranger struct {
	card     *Card
	path     cm.Path // as the card sees it
	listener netip.AddrPort
}

// receive makes the card receive a message.
func (s *stranger) receive(write func(wire.MAD)) {
	mad := make(wire.MAD, wire.MADLen)
	write(mad)
	s.card.manager.With(func(m *cm.Manager, now time.Time) { m.Receive(now, s.path, mad) })
}

// ask sends a REQ.
func (s *stranger) ask(id wire.CommID) {
	req := wire.REQ{
		LocalID: id, ServiceID: wire.ServiceIDFor(wire.PortSpaceTCP, s.listener.Port()), LocalQPN: wire.QPN(id), PathMTU: wire.MTU1024,
		Primary: wire.CMPath{Local: s.path.Remote, Remote: s.path.Local, AckTimeout: 22},
	}
	header := wire.CMAddress{Source: netip.AddrPortFrom(s.path.Remote.Addr(), 40000), Destination: s.listener.Addr()}
	header.Put(req.PrivateData[:])
	s.receive(func(mad wire.MAD) { mad.PutREQ(uint64(id), &req) })
}

// withdraw sends a REJ.
func (s *stranger) withdraw(id wire.CommID, reason wire.RejectReason) {
	s.receive(func(mad wire.MAD) {
		mad.PutREJ(uint64(id), &wire.REJ{CommIDs: wire.CommIDs{Local: id}, Reason: reason})
	})
}

// waiting returns the number of queued events of ids, over all channels of a card's sessions.
func (card *Card) waitingEvents() (n int) {
	var sessions []*Session
	card.locked(func() { sessions = slices.Clone(card.sessions) })
	for _, s := range sessions {
		n += s.ids.Waiting()
	}
	return n
}

// TestWithdrawnRequestsLeaveNoEvents: the events of withdrawn requests are removed; pending and later requests have one
// each. A request whose event the program has read is no longer pending.
func TestWithdrawnRequestsLeaveNoEvents(t *testing.T) {
	w := newWirePair(t)
	c := newConnector(t, w.a, w.b, "10.0.0.2")
	s := &stranger{card: w.b.device, path: cm.Path{Local: gid("10.0.0.2"), Remote: gid("10.0.0.1")}, listener: c.at}
	const stay = 3
	for id := wire.CommID(1); id <= stay; id++ {
		s.ask(id)
	}
	for id := wire.CommID(100); id < 20_000; id++ {
		s.ask(id)
		s.withdraw(id, []wire.RejectReason{wire.RejectTimeout, wire.RejectStaleConnection}[id%2])
	}
	s.withdraw(2, wire.RejectTimeout)
	eventually(t, "the events of the pending requests only", func() bool { return w.b.device.waitingEvents() == stay-1 })
	for range stay - 1 {
		id := c.expect(c.to, cmapi.EventConnectRequest)
		check(t, id.Reject(nil))
		check(t, id.Close())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if e, err := c.to.Get(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another event: %+v, %v", e, err)
	}
	s.ask(50)
	check(t, c.expect(c.to, cmapi.EventConnectRequest).Close())
}

// TestEventsOfAListenerAreBounded: the backlog limits the events, whatever the number of requests.
func TestEventsOfAListenerAreBounded(t *testing.T) {
	w := newWirePair(t)
	c := newConnector(t, w.a, w.b, "10.0.0.2")
	for host := range byte(250) {
		from := wire.GIDFromAddr(netip.AddrFrom4([4]byte{10, 0, 7, host}))
		s := &stranger{card: w.b.device, path: cm.Path{Local: gid("10.0.0.2"), Remote: from}, listener: c.at}
		for id := wire.CommID(1); id < 20; id++ {
			s.ask(id)
		}
	}
	eventually(t, "the backlog is full", func() bool { return w.b.device.manager.Counters()[cm.ConnectionBacklogFull] > 0 })
	w.b.device.manager.With(func(*cm.Manager, time.Time) {})
	eventually(t, "one event for each request of the backlog", func() bool { return w.b.device.waitingEvents() == cm.MaxBacklog })
}

// TestConfirmationLeavesFirst: the RTU leaves before the program is notified that it can send data.
func TestConfirmationLeavesFirst(t *testing.T) {
	w := newWirePair(t)
	c := newConnector(t, w.a, w.b, "10.0.0.2")
	c.ask()
	c.accept()
	eventually(t, "the response", func() bool { return w.a.device.waitingEvents() == 1 })
	done := make(chan *cmapi.ID, 1)
	w.a.device.manager.Serving(func(*ids.QP1) {
		go func() { done <- c.expect(c.from, cmapi.EventEstablished) }()
		select {
		case <-done:
			t.Fatal("the program got the event before the RTU left")
		case <-time.After(20 * time.Millisecond): // longer than that takes
		}
	})
	c.end(<-done, c.expect(c.to, cmapi.EventEstablished))
}

// TestMigratedIDLeavesItsChannel: the card's end of the old channel can be destroyed, that of the new one cannot.
func TestMigratedIDLeavesItsChannel(t *testing.T) {
	w := newWirePair(t)
	s := w.a.device.session
	var channels [2]provider.Handle
	for i := range channels {
		grant, err := provider.Do(s, provider.CreateEventChannel, provider.None{})
		check(t, err)
		check(t, grant.Events.Close())
		channels[i] = grant.Channel
	}
	id, err := provider.Do(s, provider.CreateID, provider.CreateIDRequest{Channel: channels[0], PortSpace: wire.PortSpaceUDP})
	check(t, err)
	refused(t, provider.Exec(s, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: channels[0]}), verbs.ErrBusy)
	check(t, provider.Exec(s, provider.MigrateID, provider.MigrateIDRequest{ID: id.ID, Channel: channels[1]}))
	check(t, provider.Exec(s, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: channels[0]}))
	refused(t, provider.Exec(s, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: channels[1]}), verbs.ErrBusy)
	check(t, provider.Exec(s, provider.DestroyID, provider.DestroyIDRequest{ID: id.ID}))
	check(t, provider.Exec(s, provider.DestroyEventChannel, provider.DestroyEventChannelRequest{Channel: channels[1]}))
}

// TestDeviceRemovalOfAListener: a listener at an address of the device gets an event; one at all addresses is on no
// device, as in the kernel.
func TestDeviceRemovalOfAListener(t *testing.T) {
	w := newWirePair(t)
	c := idsOn(w.a)
	everywhere, listening := newID(t, c), newID(t, c)
	check(t, everywhere.Bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
	check(t, listening.Bind(netip.AddrPortFrom(address("10.0.0.1"), 0)))
	for _, id := range []*cmapi.ID{everywhere, listening} {
		check(t, id.Listen(1))
	}
	w.a.device.fail(network.ErrGone)
	event, err := c.Expect(guard(t), cmapi.EventDeviceRemoval)
	check(t, err)
	if event.ID != listening {
		t.Error("event of an id that is on no device")
	}
	_, err = c.Get(guard(t))
	refused(t, err, verbs.ErrDeviceFatal)
	check(t, listening.Close())
	check(t, everywhere.Close())
	check(t, c.Close())
}
