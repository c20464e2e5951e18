// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
)

// connector makes connections between two stations, with queue pairs at both ends.
type connector struct {
	testing.TB
	a, b     *station
	from, to *cm.EventChannel
	service  *cm.ID
	at       netip.AddrPort
}

func newConnector(t testing.TB, a, b *station, address string) *connector {
	c := &connector{TB: t, a: a, b: b, from: idsOn(a), to: idsOn(b)}
	c.service = c.id(c.to)
	t.Cleanup(func() { _ = c.service.Close() }) // unless the test has closed it
	check(t, c.service.Bind(netip.AddrPortFrom(netip.MustParseAddr(address), 0)))
	check(t, c.service.Listen(0))
	var err error
	c.at, err = c.service.LocalAddr()
	check(t, err)
	return c
}

func (c *connector) id(of *cm.EventChannel) *cm.ID {
	c.Helper()
	id, err := of.CreateID(cm.PortSpaceTCP, nil)
	check(c, err)
	return id
}

// queuePair creates the queue pair of an id.
func (c *connector) queuePair(s *station, id *cm.ID) {
	c.Helper()
	_, err := id.CreateQP(s.pd, &verbs.QPInitAttr{SendCQ: s.cq, RecvCQ: s.cq, Cap: verbs.QPCap{MaxSendWR: 1, MaxRecvWR: 1}})
	check(c, err)
}

// expect returns the id of the next event.
func (c *connector) expect(of *cm.EventChannel, want cm.EventType) *cm.ID {
	c.Helper()
	for {
		event, err := of.Get(guard(c))
		check(c, err)
		if event.Type == cm.EventTimewaitExit {
			continue // of a connection that has ended
		}
		if event.Type != want {
			c.Fatalf("%v: %v, want %v", event.Type, event.Err(), want)
		}
		return event.ID
	}
}

// ask starts a connection.
func (c *connector) ask() *cm.ID {
	c.Helper()
	id := c.id(c.from)
	check(c, id.ResolveAddr(netip.AddrPort{}, c.at, waitTimeout))
	c.expect(c.from, cm.EventAddrResolved)
	check(c, id.ResolveRoute())
	c.expect(c.from, cm.EventRouteResolved)
	c.queuePair(c.a, id)
	check(c, id.Connect(&cm.ConnParam{RetryCount: 7, RNRRetryCount: 7}))
	return id
}

// accept accepts a request.
func (c *connector) accept() {
	c.Helper()
	id := c.expect(c.to, cm.EventConnectRequest)
	c.queuePair(c.b, id)
	check(c, id.Accept(&cm.ConnParam{RNRRetryCount: 7}))
}

// connect makes a connection.
func (c *connector) connect() (active, passive *cm.ID) {
	c.Helper()
	c.ask()
	c.accept()
	return c.expect(c.from, cm.EventEstablished), c.expect(c.to, cm.EventEstablished)
}

// end ends a connection, and destroys its queue pairs and ids.
func (c *connector) end(active, passive *cm.ID) {
	c.Helper()
	check(c, active.Disconnect())
	if c.expect(c.to, cm.EventDisconnected) != passive {
		c.Fatal("another connection ended")
	}
	check(c, passive.Disconnect())
	c.expect(c.from, cm.EventDisconnected)
	for _, id := range []*cm.ID{active, passive} {
		check(c, id.DestroyQP())
		check(c, id.Close())
	}
}

// BenchmarkConnect makes and ends a connection with two queue pairs, with both ends in one program, over an in-memory
// wire.
func BenchmarkConnect(b *testing.B) {
	w := newWirePair(b)
	c := newConnector(b, w.a, w.b, "10.0.0.2")
	for b.Loop() {
		c.end(c.connect())
	}
}

// message sends a message over a connection.
func (c *connector) message(active, passive *cm.ID) {
	c.Helper()
	check(c, passive.QP().PostRecv([]verbs.RecvWR{{ID: 1}}))
	check(c, active.QP().PostSend([]verbs.SendWR{{ID: 2, Opcode: verbs.WRSend, Flags: verbs.SendSignaled}}))
	for _, s := range []*station{c.a, c.b} {
		var wc [1]verbs.WC
		if n, err := s.cq.Wait(guard(c), wc[:]); err != nil || n != 1 || wc[0].Status != verbs.WCSuccess {
			c.Fatalf("%d completions, %+v, %v", n, wc[0], err)
		}
	}
}

// 10,000 connections (a fifth unless ROCED_ROUNDS is all) exist at once, first idle, then each in use; after their end
// nothing is left.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	w := newWirePair(t)
	c := newConnector(t, w.a, w.b, "10.0.0.2")
	connections := often(10_000)
	type ends struct{ active, passive *cm.ID }
	var all []ends
	for range connections {
		active, passive := c.connect()
		all = append(all, ends{active, passive})
	}
	for _, e := range all {
		c.message(e.active, e.passive)
	}
	for _, e := range all {
		c.end(e.active, e.passive)
	}
	check(t, c.service.Close())
	w.a.device.nothingLeft(t)
	w.b.device.nothingLeft(t)
}
