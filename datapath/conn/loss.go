package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
	"github.com/roced/roced/verbs/ib"
)

// What a requester does when something was lost (IBA 9.7.5.1.3, 9.7.6): a NAK or a gap among responses says so,
// or nothing comes in time; or the peer has no receive, and says how long to wait.

// foreverRNR is the RNRRetry that never ends.
const foreverRNR = 7

// Deadline is when Expire is to be called; zero if nothing expires.
func (r *Requester) Deadline() time.Time { return r.deadline }

// InFlight says whether the peer's answers are awaited: it has neither said that it is not ready, nor been silent
// for as long as Timeout says.
func (r *Requester) InFlight() bool { return !r.rnrWait && !r.silent }

// Expire is called when the deadline has come: the peer is ready again, or has not answered.
func (r *Requester) Expire(now time.Time) {
	r.deadline = time.Time{}
	switch {
	case r.rnrWait:
		r.rnrWait = false
		r.startTimer(now)
		r.turn = TurnNow
	case r.works.count == 0 || r.works.at(0).packets == 0:
	case (r.unsent || r.one) && r.PSN == r.oldest: // it was held back here: the peer cannot have answered
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

// startTimer begins the time within which the peer has to answer; it ends the time if nothing is outstanding.
func (r *Requester) startTimer(now time.Time) {
	timeout := wire.AckTimeout(r.Timeout)
	if timeout == 0 || r.oldest == r.newest || r.works.count == 0 {
		r.deadline = time.Time{}
		return
	}
	r.timeout = now.Add(timeout)
	r.deadline = r.patience(now)
}

// lost goes back to a packet that the peer has not got, or whose response is not here. Of several signs of
// one loss the first counts. named says that the peer has named it, and has packets behind it.
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

// goBack has the packets from a PSN on sent again.
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

// waitReady waits as long as the peer says before it goes back to the request that the peer had no receive
// for.
func (r *Requester) waitReady(now time.Time, s wire.Syndrome) Reason {
	switch {
	case r.works.count == 0:
		return StrayAnswer
	case r.rnrWait: // of several of one try the first counts
		return Taken
	case r.RNRRetry != foreverRNR && r.rnrRetries == 0:
		r.fail(ib.WCRNRRetryExcErr)
		return Taken
	}
	r.rnrRetries -= min(r.rnrRetries, 1)
	r.retries = r.RetryCnt // the peer answers
	r.goBack(now, r.oldest)
	r.rnrWait = true
	r.deadline = now.Add(s.RNRTime())
	return Taken
}
