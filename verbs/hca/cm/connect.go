// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// The maximum private data of connections, in bytes: of a request after the address header, of a reply, and of a
// rejection.
const (
	ConnectData = len(wire.REQ{}.PrivateData) - wire.CMAddressLen
	AcceptData  = len(wire.REP{}.PrivateData)
	RejectData  = len(wire.REJ{}.PrivateData)
)

// maxRetryCount is the maximum of a queue pair, 3 bits. As a count of RNR retries it means unlimited.
const maxRetryCount = 7

// ConnectConfig has the parameters of Connect.
type ConnectConfig struct {
	Path         Path           // of the queue pair's packets; messages have no flow label
	Service      wire.ServiceID // with the peer's port
	Source, Dest netip.AddrPort // for the address header: this side and the peer
	GUID         uint64         // of the card
	MTU          wire.MTU       // of the path
	Type         verbs.QPType   // of the queue pairs: verbs.QPTypeUC or verbs.QPTypeXRCSend, else RC
	SL           uint8          // of the path
	AckTimeout   uint8          // of the queue pairs, encoded; 0 for the path's
	Param        ib.ConnParam
	Owner        any // of the events
}

// Connect requests a connection. EventResponse, EventRejected or EventTimeout follows, the last after 103 s. It returns
// verbs.ErrInvalid for too much private data, or addresses of two IP versions.
func (m *Manager) Connect(now time.Time, config ConnectConfig) (*Connection, error) {
	config.Source, config.Dest = unmap(config.Source), unmap(config.Dest)
	if n := len(config.Param.PrivateData); n > ConnectData {
		return nil, fmt.Errorf("%w: %d bytes of private data; a request for a connection has room for %d", verbs.ErrInvalid, n, ConnectData)
	}
	if err := oneVersion(config.Source, config.Dest); err != nil {
		return nil, err
	}
	c := m.newConnection(config.Path)
	c.Service, c.Source, c.Dest, c.Owner = config.Service, config.Source, config.Dest, config.Owner
	c.MTU, c.Type, c.localQPN, c.requestTID = config.MTU, config.Type, config.Param.QPN, c.tid
	c.ResponderResources, c.InitiatorDepth = config.Param.ResponderResources, config.Param.InitiatorDepth
	c.RetryCount = min(config.Param.RetryCount, maxRetryCount)
	c.timeout = duration(responseTimeout) + 2*duration(packetLifetime)
	req := c.request(&config)
	c.ask(now, func(mad wire.MAD) { mad.PutREQ(c.requestTID, &req) })
	return c, nil
}

// request returns the REQ, as the kernel's rdma_cm writes it.
func (c *Connection) request(config *ConnectConfig) wire.REQ {
	param := &config.Param
	req := wire.REQ{
		LocalID: c.local, ServiceID: c.Service, LocalCAGUID: config.GUID, LocalQPN: c.localQPN, StartingPSN: c.RQPSN,
		ResponderResources: c.ResponderResources, InitiatorDepth: c.InitiatorDepth, EndToEndFlowControl: param.FlowControl,
		RemoteTimeout: responseTimeout, LocalTimeout: responseTimeout, MaxCMRetries: maxCMRetries,
		RetryCount: c.RetryCount, RNRRetryCount: min(param.RNRRetryCount, maxRetryCount),
		PKey: wire.PKeyDefault, PathMTU: c.MTU, SRQ: param.SRQ,
		Primary: wire.CMPath{
			LocalLID: noLID, RemoteLID: noLID, Local: c.Path.Local, Remote: c.Path.Remote,
			FlowLabel: c.Path.FlowLabel, TrafficClass: c.Path.TrafficClass, HopLimit: c.Path.HopLimit, SL: config.SL, AckTimeout: cmp.Or(config.AckTimeout, ackTimeout),
		},
	}
	req.TransportService, req.ExtendedTransport = transportOf(config.Type)
	if config.Type == verbs.QPTypeXRCSend { // an initiator has no responder: the kernel sets none of these
		req.ResponderResources, req.RetryCount, req.RNRRetryCount, req.SRQ = 0, 0, 0, false
	}
	header := wire.CMAddress{Source: c.Source, Destination: c.Dest.Addr()}
	header.Put(req.PrivateData[:])
	copy(req.PrivateData[wire.CMAddressLen:], param.PrivateData)
	return req
}

// noLID is the value in a path for InfiniBand's own addresses.
const noLID = 0xFFFF

// FlowLabel returns the flow label of a connection's packets, which the kernel derives from the ports.
func FlowLabel(source, dest uint16) uint32 { return (uint32(source)*31 + uint32(dest)) & (1<<20 - 1) }

// accepted handles a REP.
func (m *Manager) accepted(now time.Time, path Path, mad wire.MAD) {
	rep := mad.REP()
	c := m.connectionOf(path, rep.CommIDs)
	switch {
	case c == nil:
		m.refuseREP(now, path, mad)
	case c.state != stateREQSent:
		m.counters[ConnectionDuplicates]++
		c.acceptedAgain()
	case m.refuseStale(now, path, mad, c.numberIn(&rep), wire.AnsweredREP):
	default:
		m.counters[ConnectionMessages]++
		c.answered()
		c.state = stateREPReceived
		c.take(&rep)
		c.tell(Event{Kind: EventResponse, Peer: c.Peer})
	}
}

// numberIn returns the number of the peer's queue pair in a REP: for an XRC target in the field for the EE context.
func (c *Connection) numberIn(rep *wire.REP) wire.QPN {
	if c.Type == verbs.QPTypeXRCSend {
		return wire.QPN(rep.LocalEECN)
	}
	return rep.LocalQPN
}

// take copies the peer's parameters from a REP.
func (c *Connection) take(rep *wire.REP) {
	c.knowsPeer(rep.CommIDs.Local, c.numberIn(rep))
	c.SQPSN, c.RNRRetryCount = rep.StartingPSN, rep.RNRRetryCount
	c.ResponderResources, c.InitiatorDepth = rep.InitiatorDepth, rep.ResponderResources
	c.AckTimeout = max(ackTimeout, rep.TargetAckDelay)
	c.Peer = ib.ConnParam{
		QPN: c.numberIn(rep), PrivateData: rep.PrivateData[:], ResponderResources: c.ResponderResources, InitiatorDepth: c.InitiatorDepth,
		FlowControl: rep.EndToEndFlowControl, RNRRetryCount: rep.RNRRetryCount, SRQ: rep.SRQ,
	}
}

// acceptedAgain answers a repeated REP.
func (c *Connection) acceptedAgain() {
	switch c.state {
	case stateREPReceived:
		c.sendMRA(wire.AnsweredREP)
	case stateEstablished:
		c.sendRTU()
	case stateRejected:
		c.resend()
	}
}

// Confirm confirms the peer's acceptance, so that its queue pair can send. It returns verbs.ErrInvalid if the peer has
// not accepted.
func (c *Connection) Confirm() error {
	if c.state != stateREPReceived {
		return fmt.Errorf("%w: confirm a connection that the peer has not accepted, or that has ended", verbs.ErrInvalid)
	}
	c.state, c.Peer.PrivateData = stateEstablished, nil
	c.sendRTU()
	return nil
}

func (c *Connection) sendRTU() {
	c.send(func(mad wire.MAD) { mad.PutRTU(c.requestTID, &wire.RTU{CommIDs: c.ids()}) })
}
