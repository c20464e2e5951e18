// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// Receive handles a datagram that QP 1 received, with its payload and its path. Each is counted once, by its outcome.
func (m *Manager) Receive(now time.Time, path Path, payload []byte) {
	m.hand = nil
	mad, ok := wire.ParseMAD(payload)
	if !ok {
		m.counters[BadLength]++
		return
	}
	switch h := mad.Header(); {
	case h.BaseVersion != wire.MADBaseVersion:
		m.counters[BadVersion]++
	case h.Method == wire.MethodGet || h.Method == wire.MethodSet:
		m.refuseQuery(now, path, h)
	case h.Class != wire.ClassCM || h.Method != wire.MethodSend:
		m.counters[Unknown]++
	case h.ClassVersion != wire.ClassVersionCM:
		m.counters[BadVersion]++
		m.refuseVersion(now, path, mad)
	default:
		m.message(now, path, mad)
	}
}

// message passes a message of connection management to its handler.
func (m *Manager) message(now time.Time, path Path, mad wire.MAD) {
	switch mad.Header().Attribute {
	case wire.AttributeSIDRReq:
		m.request(now, path, mad)
	case wire.AttributeSIDRRep:
		m.reply(path, mad)
	case wire.AttributeREQ:
		m.connectionRequest(now, path, mad)
	case wire.AttributeMRA:
		m.postponed(now, path, mad)
	case wire.AttributeREJ:
		m.rejected(now, path, mad)
	case wire.AttributeREP:
		m.accepted(now, path, mad)
	case wire.AttributeRTU:
		m.ready(path, mad)
	case wire.AttributeDREQ:
		m.ended(now, path, mad)
	case wire.AttributeDREP:
		m.agreed(now, path, mad)
	case wire.AttributeLAP:
		m.refuseLAP(now, path, mad)
	case wire.AttributeAPR:
		m.counters[Stray]++
	default:
		m.counters[Unknown]++
	}
}
