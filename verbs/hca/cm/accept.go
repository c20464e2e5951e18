// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"fmt"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// connectionRequest handles a REQ.
func (m *Manager) connectionRequest(now time.Time, path Path, mad wire.MAD) {
	req := mad.REQ()
	if known := m.connections.byPeer[peerID{path.Remote, req.LocalID}]; known != nil {
		m.counters[ConnectionDuplicates]++
		known.requestedAgain(now, path, mad)
		return
	}
	source, dest, ok := addresses(path, req.ServiceID, req.PrivateData[:])
	l := m.listenerFor(listenerKey{req.ServiceID, true}, dest.Addr())
	switch reason := l.unacceptable(path, &req); {
	case len(m.listeners[listenerKey{req.ServiceID, true}]) == 0 || ok && l == nil:
		m.refuseREQ(now, path, mad, wire.RejectServiceID)
	case !ok:
		m.refuseREQ(now, path, mad, wire.RejectConsumer)
	case reason != 0:
		m.refuseREQ(now, path, mad, reason)
	case m.refuseStale(now, path, mad, req.LocalQPN, wire.AnsweredREQ):
	case !l.hasRoom(path.Remote):
		m.counters[ConnectionBacklogFull]++
	default:
		m.counters[ConnectionRequests]++
		c := m.requested(path, mad, &req)
		c.Type = l.config.Type
		c.Source, c.Dest, c.listener = source, dest, l
		l.add(c)
	}
}

// unacceptable returns the reason why the listener cannot accept a request; 0 if it can or if l is nil.
func (l *Listener) unacceptable(path Path, req *wire.REQ) wire.RejectReason {
	switch {
	case l == nil:
		return 0
	case !asksFor(req, l.config.Type):
		return wire.RejectTransport
	case req.Primary.Local != path.Remote || req.Primary.Remote != path.Local:
		return wire.RejectPrimaryGID
	case req.PathMTU.Bytes() == 0:
		return wire.RejectMTU
	}
	return 0
}

// The transport services of connections in a REQ, and the extended one of XRC.
const (
	transportRC       = 0
	transportUC       = 1
	transportExtended = 3
	extendedXRC       = 1
)

// transportOf returns the transport service of queue pairs of a type in a REQ. XRC has one transport service at both
// ends.
func transportOf(kind verbs.QPType) (service, extended uint8) {
	switch kind {
	case verbs.QPTypeUC:
		return transportUC, 0
	case verbs.QPTypeXRCSend, verbs.QPTypeXRCRecv:
		return transportExtended, extendedXRC
	}
	return transportRC, 0
}

// asksFor reports whether a REQ is for queue pairs of a type.
func asksFor(req *wire.REQ, kind verbs.QPType) bool {
	service, extended := transportOf(kind)
	return req.TransportService == service && (service != transportExtended || req.ExtendedTransport == extended)
}

// requested creates the connection that a REQ requests.
func (m *Manager) requested(path Path, mad wire.MAD, req *wire.REQ) *Connection {
	c := m.newConnection(path.answer())
	c.state, c.requestTID, c.Service, c.MTU = stateREQReceived, mad.Header().TransactionID, req.ServiceID, req.PathMTU
	c.Path.TrafficClass, c.Path.HopLimit, c.Path.FlowLabel = req.Primary.TrafficClass, req.Primary.HopLimit, req.Primary.FlowLabel
	c.knowsPeer(req.LocalID, req.LocalQPN)
	c.SQPSN, c.AckTimeout = req.StartingPSN, req.Primary.AckTimeout
	c.RetryCount, c.RNRRetryCount = req.RetryCount, req.RNRRetryCount
	c.ResponderResources, c.InitiatorDepth = req.InitiatorDepth, req.ResponderResources
	c.timeout, c.patience = duration(req.LocalTimeout), int(req.MaxCMRetries)
	c.Peer = ib.ConnParam{
		QPN: req.LocalQPN, PrivateData: req.PrivateData[wire.CMAddressLen:], ResponderResources: c.ResponderResources, InitiatorDepth: c.InitiatorDepth,
		FlowControl: req.EndToEndFlowControl, RetryCount: req.RetryCount, RNRRetryCount: req.RNRRetryCount, SRQ: req.SRQ,
	}
	return c
}

// requestedAgain answers a repeated REQ.
func (c *Connection) requestedAgain(now time.Time, path Path, mad wire.MAD) {
	switch c.state {
	case stateREQReceived:
		c.sendMRA(wire.AnsweredREQ)
	case stateREPSent, stateRejected:
		c.resend()
	case stateTimewait:
		c.manager.rejectREQ(now, path, mad, wire.RejectStaleConnection)
	}
}

// refuseStale refuses a REQ or a REP of a queue pair that has a connection here: the peer has lost that connection,
// which ends. It returns false if the queue pair has no connection.
func (m *Manager) refuseStale(now time.Time, path Path, mad wire.MAD, qpn wire.QPN, rejected wire.Answered) bool {
	old := m.connections.byQP[peerQP{path.Remote, qpn}]
	if old == nil {
		return false
	}
	m.counters[StaleConnections]++
	m.rejectStale(now, path, mad, rejected)
	if old.state == stateEstablished {
		old.Disconnect(now)
	}
	return true
}

// Accept accepts the requested connection, with at most the requested READs and atomics. EventEstablished,
// EventRejected or EventTimeout follows. It returns verbs.ErrInvalid for too much private data, and if the request was
// answered or withdrawn before.
func (c *Connection) Accept(now time.Time, guid uint64, p ib.ConnParam) error {
	switch n := len(p.PrivateData); {
	case n > AcceptData:
		return fmt.Errorf("%w: %d bytes of private data; a reply has room for %d", verbs.ErrInvalid, n, AcceptData)
	case c.state != stateREQReceived:
		return fmt.Errorf("%w: the request has been answered already, or withdrawn", verbs.ErrInvalid)
	}
	c.state, c.localQPN, c.Peer.PrivateData = stateREPSent, p.QPN, nil
	c.ResponderResources, c.InitiatorDepth = min(c.ResponderResources, p.ResponderResources), min(c.InitiatorDepth, p.InitiatorDepth)
	rep := wire.REP{
		CommIDs: c.ids(), LocalQPN: p.QPN, StartingPSN: c.RQPSN, ResponderResources: c.ResponderResources, InitiatorDepth: c.InitiatorDepth,
		TargetAckDelay: ackDelay, EndToEndFlowControl: p.FlowControl, RNRRetryCount: min(p.RNRRetryCount, maxRetryCount), SRQ: p.SRQ, LocalCAGUID: guid,
	}
	if c.Type == verbs.QPTypeXRCRecv { // its number has another place, as in the kernel
		rep.LocalQPN, rep.LocalEECN, rep.EndToEndFlowControl, rep.SRQ = 0, uint32(p.QPN), false, true
	}
	copy(rep.PrivateData[:], p.PrivateData)
	c.ask(now, func(mad wire.MAD) { mad.PutREP(c.requestTID, &rep) })
	return nil
}

// ready handles an RTU.
func (m *Manager) ready(path Path, mad wire.MAD) {
	switch c := m.connectionOf(path, mad.CommIDs()); {
	case c == nil:
		m.counters[Stray]++
	case c.state != stateREPSent:
		m.counters[ConnectionDuplicates]++
	default:
		m.counters[ConnectionMessages]++
		c.establish()
	}
}

// Establish establishes the connection because a packet of the peer's queue pair arrived before the peer's RTU. It
// returns verbs.ErrInvalid if the connection was not accepted, or has ended.
func (c *Connection) Establish() error {
	switch c.state {
	case stateREPSent:
		c.establish()
	case stateEstablished:
	default:
		return fmt.Errorf("%w: a connection that this side has not accepted, or that has ended", verbs.ErrInvalid)
	}
	return nil
}

// establish notifies the owner. Private data of an RTU is not passed on, as in the kernel.
func (c *Connection) establish() {
	c.answered()
	c.state = stateEstablished
	c.tell(Event{Kind: EventEstablished})
}
