// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// Handling of losses by the requester (IBA 9.7.5.1.3, 9.7.6). A loss is detected by a NAK, a gap among responses or a
// timeout. An RNR NAK reports that the peer has no receive request posted, and specifies how long to wait.

// foreverRNR is the value of RNRRetry for an unlimited number of retries.
const foreverRNR = 7

// InFlight reports whether the peer is expected to respond to sent packets: no RNR wait is in progress, and the local
// ACK timeout has not expired since the last response.
func (r *Requester) InFlight() bool { return !r.rnrWait && !r.silent }

// Expire handles the deadline: it ends an RNR wait, sends a probe, or handles a local ACK timeout.
func (r *Requester) Expire(now time.Time) {
	r.deadline = time.Time{}
	switch {
	case r.rnrWait:
		r.rnrWait = false
		r.startTimer(now)
		r.turn = TurnNow
	case r.works.count == 0 || r.works.at(0).packets == 0:
	case (r.unsent || r.one) && r.PSN == r.oldest: // the packet is still to be sent, so the peer cannot have responded
		r.startTimer(now)
	case r.timeout.After(now):
		r.probe(now)
	default:
		r.Counters.Timeouts++
		r.again, r.silent = false, true
		r.lost(now, r.oldest, false)
	}
	r.Queue.Publish()
}

// lost retransmits a packet that the peer has not received, or whose response is missing. It ignores further
// indications of the same loss. named is true if a NAK has reported the PSN, which means that the peer has received
// later packets.
func (r *Requester) lost(now time.Time, psn wire.PSN, named bool) {
	switch {
	case r.again || r.works.count == 0:
	case r.retries == 0:
		r.fail(ib.WCRetryExcErr)
	default:
		r.retries--
		if r.canMend(psn, named) {
			r.window.halve()
			r.mend(psn, true)
			r.startTimer(now)
		} else {
			r.goBack(now, psn)
		}
		r.again = true
	}
}

// goBack retransmits the packets from a PSN on.
func (r *Requester) goBack(now time.Time, psn wire.PSN) {
	r.PSN = psn
	r.current = r.works.find(psn)
	r.one, r.awaited = false, false
	r.trip.cancel()
	r.afterRead, r.window.unasked, r.unsent = r.oldest, 0, true
	r.window.halve()
	r.startTimer(now)
	r.turn = TurnNow
}

// waitReady goes back to the request that found no receive request, and starts the wait that the RNR NAK specifies.
func (r *Requester) waitReady(now time.Time, s wire.Syndrome) Reason {
	switch {
	case r.works.count == 0:
		return StrayAnswer
	case r.rnrWait: // a further RNR NAK for the same attempt
		return Taken
	case r.RNRRetry != foreverRNR && r.rnrRetries == 0:
		r.fail(ib.WCRNRRetryExcErr)
		return Taken
	}
	r.rnrRetries -= min(r.rnrRetries, 1)
	r.retries = r.RetryCnt // an RNR NAK is a response
	r.goBack(now, r.oldest)
	r.rnrWait = true
	r.deadline = now.Add(s.RNRTime())
	return Taken
}
