// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"testing"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/ib"
)

// TestXRC: a REQ for XRC has the extended transport service, and omits the parameters of a responder. The number of a
// target is in the field for the EE context of a REP, as in the kernel's connection manager.
func TestXRC(t *testing.T) {
	s := newSides(t)
	s.listener.Close(s.now)
	var err error
	s.listener, err = s.server.Listen(ListenConfig{Service: connections7174, Connections: true, Type: verbs.QPTypeXRCRecv, Owner: "listener"})
	check(t, err)
	config := connect(back, 11, "active")
	config.Type, config.Param.RetryCount, config.Param.RNRRetryCount, config.Param.SRQ = verbs.QPTypeXRCSend, 6, 5, true
	s.active, err = s.client.Connect(s.now, config)
	check(t, err)
	d := one(t, sent(s.client))
	req := mad(d).REQ()
	if req.TransportService != 3 || req.ExtendedTransport != 1 || req.LocalQPN != 11 || req.ResponderResources != 0 || req.RetryCount != 0 || req.RNRRetryCount != 0 || req.SRQ {
		t.Errorf("%+v", req)
	}
	if s.active.RetryCount != 6 {
		t.Errorf("the initiator itself retries %d times", s.active.RetryCount)
	}
	s.toServer(d)
	s.take()
	check(t, s.passive.Accept(s.now, 2, ib.ConnParam{QPN: 12, ResponderResources: 4, InitiatorDepth: 1, RNRRetryCount: 5}))
	d = one(t, sent(s.server))
	if rep := mad(d).REP(); rep.LocalQPN != 0 || rep.LocalEECN != 12 || !rep.SRQ || rep.RNRRetryCount != 5 {
		t.Errorf("%+v", rep)
	}
	s.toClient(d)
	if e := s.tells(s.client, EventResponse)[0]; e.Peer.QPN != 12 || s.active.RemoteQPN != 12 || s.active.RNRRetryCount != 5 {
		t.Errorf("%+v, remote %v", e, s.active.RemoteQPN)
	}
	// Another extended transport is none of the listener's.
	other := newSides(t)
	other.listener.Close(other.now)
	_, err = other.server.Listen(ListenConfig{Service: connections7174, Connections: true, Type: verbs.QPTypeXRCRecv, Owner: "listener"})
	check(t, err)
	d = other.ask()
	req = mad(d).REQ()
	req.TransportService, req.ExtendedTransport = 3, 2
	d.mad().PutREQ(1, &req)
	other.toServer(d)
	other.exchange()
	if e := other.tells(other.client, EventRejected)[0]; e.Reason != wire.RejectTransport {
		t.Errorf("rejected with %v", e.Reason)
	}
}
