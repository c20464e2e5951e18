// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// Reject refuses the peer's request or acceptance. It returns verbs.ErrInvalid for too much private data, and if there
// is nothing to reject.
func (c *Connection) Reject(now time.Time, privateData []byte) error {
	switch n := len(privateData); {
	case n > RejectData:
		return fmt.Errorf("%w: %d bytes of private data; a rejection has room for %d", verbs.ErrInvalid, n, RejectData)
	case c.state != stateREQReceived && c.state != stateREPReceived:
		return fmt.Errorf("%w: there is no request or response to reject, or it has been answered", verbs.ErrInvalid)
	}
	c.reject(now, wire.RejectConsumer, privateData)
	return nil
}

// reject refuses the peer's message. The rejection is kept, since the peer may repeat the message.
func (c *Connection) reject(now time.Time, reason wire.RejectReason, privateData []byte) {
	rejected := wire.AnsweredNone
	switch c.state {
	case stateREQReceived:
		rejected = wire.AnsweredREQ
	case stateREPReceived:
		rejected = wire.AnsweredREP
	}
	c.answered()
	c.state = stateRejected
	c.forgetPeer()
	c.manager.timers.Set(&c.timer, now.Add(keepReply))
	c.sendREJ(rejected, reason, privateData)
	c.abandon()
}

// sendREJ sends a REJ, which resend repeats.
func (c *Connection) sendREJ(rejected wire.Answered, reason wire.RejectReason, privateData []byte) {
	rej := wire.REJ{CommIDs: c.ids(), Rejected: rejected, Reason: reason}
	copy(rej.PrivateData[:], privateData)
	c.keep(func(mad wire.MAD) { mad.PutREJ(c.requestTID, &rej) })
}

// rejected handles a REJ.
func (m *Manager) rejected(now time.Time, path Path, mad wire.MAD) {
	rej := mad.REJ()
	c := m.connectionOf(path, rej.CommIDs)
	if rej.CommIDs.Remote == 0 { // from a peer that does not know this side's id yet
		c = m.connections.byPeer[peerID{path.Remote, rej.CommIDs.Local}]
	}
	switch {
	case c == nil || c.state >= stateDREQReceived:
		m.counters[Stray]++
	case c.state == stateDREQSent:
		m.counters[ConnectionMessages]++
		c.end(now, false)
	default:
		m.counters[ConnectionMessages]++
		c.refused(now, &rej)
	}
}

// refused ends the connection because of the peer's REJ.
func (c *Connection) refused(now time.Time, rej *wire.REJ) {
	if c.listener != nil && c.listener.withdraw(c) {
		c.forget() // no program has seen it, so no packet of it is in flight
		return
	}
	if c.state == stateEstablished || rej.Reason == wire.RejectStaleConnection {
		c.timewait(now)
	} else {
		c.forget()
	}
	c.tell(Event{Kind: EventRejected, Reason: rej.Reason, Peer: ib.ConnParam{PrivateData: rej.PrivateData[:]}})
}

// sendMRA announces that the answer takes long.
func (c *Connection) sendMRA(received wire.Answered) {
	c.send(func(mad wire.MAD) {
		mad.PutMRA(c.requestTID, &wire.MRA{CommIDs: c.ids(), Received: received, ServiceTimeout: mraTimeout})
	})
}

// postponed handles an MRA. Only one is accepted for each try, so that the peer cannot extend the wait indefinitely.
func (m *Manager) postponed(now time.Time, path Path, mad wire.MAD) {
	mra := mad.MRA()
	c := m.connectionOf(path, mra.CommIDs)
	switch {
	case c == nil:
		m.counters[Stray]++
	case c.delayed || !c.awaits(mra.Received):
		m.counters[ConnectionDuplicates]++
	default:
		m.counters[ConnectionMessages]++
		c.delayed = true
		m.timers.Set(&c.timer, now.Add(duration(mra.ServiceTimeout)+c.timeout))
	}
}

// awaits reports whether the answer to a message is outstanding.
func (c *Connection) awaits(sent wire.Answered) bool {
	return c.state == stateREQSent && sent == wire.AnsweredREQ || c.state == stateREPSent && sent == wire.AnsweredREP
}
