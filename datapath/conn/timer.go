// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// The requester's timer limits the wait for a response. The local ACK timeout is specified by the program (IBA
// 9.7.6.1.3). A probe is sent earlier, if the usual response time is known.

// Deadline returns the time at which to call Expire; zero if none is set.
func (r *Requester) Deadline() time.Time { return r.deadline }

// Begins reports whether the next packet starts the timer for a response.
func (r *Requester) Begins() bool { return r.unsent || r.deadline.IsZero() }

// startTimer starts the timer for the peer's next response. It stops the timer if no response is outstanding or the
// local ACK timeout is 0.
func (r *Requester) startTimer(now time.Time) {
	timeout := wire.AckTimeout(r.Timeout)
	if timeout == 0 || r.oldest == r.newest || r.works.count == 0 {
		r.deadline = time.Time{}
		return
	}
	r.timeout = now.Add(timeout)
	r.deadline = r.patience(now)
}

// timeTrips ends a measurement of the response time, and begins the next one, whose packet is the next to be sent.
// During a READ, whose response packets are not requested separately, it is the response packet askGap packets later.
func (r *Requester) timeTrips(now time.Time) {
	r.trip.end(r.oldest, now)
	switch {
	case r.oldest == r.newest: // no packets are in flight, so the next one may be sent much later
		r.trip.cancel()
		return
	case r.runs:
		return
	}
	next := r.newest
	if soon := r.oldest.Plus(askGap); r.works.count > 0 && r.works.at(0).wantsAnswer() && soon.Ahead(next) < 0 {
		next = soon
	}
	r.trip.begin(next, now)
}

// patience returns the time until which to wait for a response: the end of the local ACK timeout, or of the usual
// response time if that is earlier.
func (r *Requester) patience(now time.Time) time.Time {
	if r.usual > 0 && r.probes < mostProbes && !r.costly() {
		if at := now.Add(r.usual << r.probes); at.Before(r.timeout) {
			return at
		}
	}
	return r.timeout
}

// trip measures response times (as in RFC 6298), of one packet at a time and never of a retransmission.
type trip struct {
	runs              bool          // a measurement is in progress
	psn               wire.PSN      // PSN of the measured packet
	at                time.Time     // start of the measurement
	smooth, deviation time.Duration // SRTT and RTTVAR of RFC 6298; smooth is 0 until the first measurement
	least             time.Duration // minimum response time
	usual             time.Duration // time to wait for a response before a probe; 0 if unknown
	doubts            uint8         // number of responses that arrived too soon to be caused by a probe
}

const (
	// leastPatience is the minimum wait before a probe. It does not depend on response times, because the peer is a
	// program that may be waiting for a processor.
	leastPatience = 500 * time.Microsecond
	mostDoubts    = 6 // maximum number of doubts; each doubles the wait
)

// begin starts a measurement, unless one is in progress. The packet is sent now or soon.
func (t *trip) begin(psn wire.PSN, now time.Time) {
	if !t.runs {
		t.runs, t.psn, t.at = true, psn, now
	}
}

func (t *trip) cancel() { t.runs = false }

// end ends the measurement, if an acknowledgement of all packets before a PSN covers its packet.
func (t *trip) end(before wire.PSN, now time.Time) {
	if !t.runs || before.Ahead(t.psn) <= 0 {
		return
	}
	t.runs = false
	took := max(now.Sub(t.at), 1)
	if t.smooth == 0 {
		t.smooth, t.deviation, t.least = took, took/2, took
	}
	t.deviation += ((t.smooth - took).Abs() - t.deviation) / 4
	t.smooth += (took - t.smooth) / 8
	t.least = min(t.least, took)
	t.learn()
}

func (t *trip) learn() { t.usual = max(t.smooth+4*t.deviation, leastPatience) << t.doubts }

// doubt handles a response that arrives some time after a probe. If that time is too short, the response was to the
// original packet, and the probe was premature.
func (t *trip) doubt(after time.Duration) {
	if after < t.least/2 && t.doubts < mostDoubts {
		t.doubts++
		t.learn()
	}
}
