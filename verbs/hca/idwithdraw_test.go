package hca

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
	cmapi "github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/hca/cm"
)

// stranger asks for connections with the messages alone.
type stranger struct {
	card     *Card
	path     cm.Path // as the card sees it
	listener netip.AddrPort
}

// receive has the card receive a message.
func (s *stranger) receive(write func(wire.MAD)) {
	mad := make(wire.MAD, wire.MADLen)
	write(mad)
	s.card.withCM(func(m *cm.Manager, now time.Time) { m.Receive(now, s.path, mad) })
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

// waiting is how many events of a channel's ids wait, of all channels of a card's sessions.
func (card *Card) waitingEvents() (n int) {
	card.mu.Lock()
	defer card.mu.Unlock()
	for _, s := range card.sessions {
		for _, c := range s.eventChannels.all() {
			n += c.waiting.Len()
		}
	}
	return n
}

// TestWithdrawnRequestsLeaveNoEvents: requests that are withdrawn take their events along; those that wait have
// one each, and so do those that come after. A program that gets an event waits no longer for it.
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
	eventually(t, "the events of those that wait are there, and no others", func() bool { return w.b.device.waitingEvents() == stay-1 })
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

// TestEventsOfAListenerAreBounded: by its backlog, however many ask.
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
	eventually(t, "the backlog is full", func() bool { return w.b.device.manager.counters()[cm.ConnectionBacklogFull] > 0 })
	w.b.device.withCM(func(*cm.Manager, time.Time) {})
	eventually(t, "there are as many events", func() bool { return w.b.device.waitingEvents() == cm.MaxBacklog })
}
