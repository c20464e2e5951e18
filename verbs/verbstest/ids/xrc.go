// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/cm"
	"github.com/roced/roced/verbs/verbstest/rig"
	"golang.org/x/sys/unix"
)

// ofType creates an id of port space TCP for a type of queue pair.
func (e *idEnd) ofType(kind verbs.QPType) *cm.ID {
	e.Helper()
	id, err := e.channel.CreateIDOfType(cm.PortSpaceTCP, kind, nil)
	rig.Check(e, err)
	e.closeAtEnd(id)
	return id
}

// idXRC checks that ids for XRC connect an initiator to a target. The private data contains the number of the SRQ.
func idXRC(t *testing.T, w *rig.World) {
	a, b := newIDEnd(w.A), newIDEnd(w.B)
	domain := w.B.NewXRCD()
	q := w.B.NewXRCQueue(domain)
	service := b.ofType(verbs.QPTypeXRCRecv)
	rig.Check(t, service.Bind(port(netip.IPv4Unspecified(), 0)))
	rig.Check(t, service.Listen(0))
	at, err := service.LocalAddr()
	rig.Check(t, err)

	active := a.ofType(verbs.QPTypeXRCSend)
	a.routed(active, port(w.B.End.IPv4, at.Port()))
	from := a.queuePairOf(active)
	rig.Check(t, active.Connect(nil))
	request := b.request(service)
	_, err = request.ID.CreateQP(b.PD, &verbs.QPInitAttr{SendCQ: b.CQ, RecvCQ: b.CQ})
	rig.Refused(t, err, unix.EINVAL, "XRC domain")
	_, err = request.ID.CreateQP(nil, &verbs.QPInitAttr{XRCD: w.A.NewXRCD()})
	rig.Refused(t, err, unix.EINVAL, "XRC domain")
	target, err := request.ID.CreateQP(nil, &verbs.QPInitAttr{XRCD: domain})
	rig.Check(t, err)
	rig.Check(t, request.ID.Accept(&cm.ConnParam{PrivateData: binary.BigEndian.AppendUint32(nil, uint32(q.Number()))}))
	event := a.event(active, cm.EventEstablished)
	b.event(request.ID, cm.EventEstablished)
	if event.QPN != target.Number() || !event.SRQ {
		t.Errorf("got queue pair %v and SRQ %v of the peer, want queue pair %v", event.QPN, event.SRQ, target.Number())
	}
	q.Recv(5, 0, rig.RegionLen)
	wr := from.Request(verbs.WRSend, &rig.Peer{MR: q.MR}, 5000)
	wr.RemoteSRQN = verbs.SRQN(binary.BigEndian.Uint32(event.PrivateData))
	from.Post(wr, from.Request(verbs.WRSend, &rig.Peer{MR: q.MR}, 0)) // the second request has no SRQ number
	if wc := q.Expect(rig.OK(5))[0]; wc.QPN != target.Number() {
		t.Errorf("%+v", wc)
	}
	from.Expect(rig.OK(1), rig.Ended(1, verbs.WCRemInvReqErr))
	rig.Check(t, active.Disconnect())
	b.event(request.ID, cm.EventDisconnected)
	rig.Check(t, request.ID.Disconnect())
	a.event(active, cm.EventDisconnected)

	a.rejected(a.connectIn(cm.PortSpaceTCP, port(w.B.End.IPv4, at.Port()), ""), 9, "") // requests RC
	wrong := b.ofType(verbs.QPTypeXRCSend)
	rig.Check(t, wrong.Bind(port(netip.IPv4Unspecified(), 0)))
	rig.Refused(t, wrong.Listen(0), unix.EINVAL, "XRC_RECV")
	other := a.ofType(verbs.QPTypeXRCRecv)
	a.routed(other, port(w.B.End.IPv4, at.Port()))
	rig.Refused(t, other.Connect(&cm.ConnParam{QPN: otherQPN()}), unix.EINVAL, "XRC_SEND")
}
