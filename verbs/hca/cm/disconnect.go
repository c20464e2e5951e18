// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Disconnect ends the connection, or agrees to the peer's end. EventDisconnected follows in the first case, when the
// peer agrees or does not respond; then, in both cases, EventTimewaitExit. In other states it has no effect.
func (c *Connection) Disconnect(now time.Time) {
	switch c.state {
	case stateEstablished:
		c.state = stateDREQSent
		c.ask(now, func(mad wire.MAD) { mad.PutDREQ(c.tid, &wire.DREQ{CommIDs: c.ids(), RemoteQPN: c.RemoteQPN}) })
	case stateDREQReceived:
		c.sendDREP(c.requestTID)
		c.timewait(now)
	}
}

// ended handles a DREQ.
func (m *Manager) ended(now time.Time, path Path, mad wire.MAD) {
	dreq := mad.DREQ()
	c := m.connectionOf(path, dreq.CommIDs)
	switch {
	case c == nil:
		m.confirmDREQ(now, path, mad)
	case dreq.RemoteQPN != c.localQPN:
		m.counters[Stray]++
	case c.state == stateREPSent || c.state == stateEstablished:
		m.counters[ConnectionMessages]++
		c.answered()
		c.state, c.requestTID = stateDREQReceived, mad.Header().TransactionID
		c.tell(Event{Kind: EventDisconnected})
		if c.Owner == nil {
			c.Disconnect(now)
		}
	case c.state == stateDREQSent: // both sides at once
		m.counters[ConnectionMessages]++
		c.sendDREP(mad.Header().TransactionID)
		c.end(now, false)
	default:
		m.counters[ConnectionDuplicates]++
		if c.state == stateTimewait || c.state == stateRejected {
			c.sendDREP(mad.Header().TransactionID)
		}
	}
}

func (c *Connection) sendDREP(tid uint64) {
	c.send(func(mad wire.MAD) { mad.PutDREP(tid, &wire.DREP{CommIDs: c.ids()}) })
}

// agreed handles a DREP.
func (m *Manager) agreed(now time.Time, path Path, mad wire.MAD) {
	switch c := m.connectionOf(path, mad.CommIDs()); {
	case c == nil:
		m.counters[Stray]++
	case c.state != stateDREQSent:
		m.counters[ConnectionDuplicates]++
	default:
		m.counters[ConnectionMessages]++
		c.end(now, false)
	}
}

// end completes the end that this side requested; unanswered is true if the peer has not agreed to it.
func (c *Connection) end(now time.Time, unanswered bool) {
	c.timewait(now)
	c.tell(Event{Kind: EventDisconnected, Unanswered: unanswered})
}

// timewait keeps the connection until no packet of it can be in flight. Its peer's queue pair may have another
// connection.
func (c *Connection) timewait(now time.Time) {
	c.answered()
	c.state = stateTimewait
	c.forgetPeer()
	c.manager.timers.Set(&c.timer, now.Add(duration(min(c.AckTimeout, maxTimewait))))
}

// maxTimewait limits the timewait that a peer's timeout can cause: 17 s.
const maxTimewait = 22

// refuseLAP refuses an alternate path, which is not supported.
func (m *Manager) refuseLAP(now time.Time, path Path, mad wire.MAD) {
	m.counters[PathsRefused]++
	apr := wire.APR{CommIDs: swapped(mad), Status: wire.APRCommID}
	if m.connectionOf(path, mad.CommIDs()) != nil {
		apr.Status = wire.APRUnsupported
	}
	m.refuse(now, path, func(answer wire.MAD) { answer.PutAPR(mad.Header().TransactionID, &apr) })
}
