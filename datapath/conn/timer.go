// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// The requester's timer: when it stops waiting for a response. The local ACK timeout is specified by the program
// (IBA 9.7.6.1.3); a probe is sent earlier, once the usual response time is known.

// Deadline returns the time at which to call Expire; zero if none is set.
func (r *Requester) Deadline() time.Time { return r.deadline }

// Begins reports whether the next packet starts the timer for a response.
func (r *Requester) Begins() bool { return r.unsent || r.deadline.IsZero() }

// startTimer starts the timer for the peer's next response; it stops the timer if nothing is outstanding.
func (r *Requester) startTimer(now time.Time) {
	timeout := wire.AckTimeout(r.Timeout)
	if timeout == 0 || r.oldest == r.newest || r.works.count == 0 {
		r.deadline = time.Time{}
		return
	}
	r.timeout = now.Add(timeout)
	r.deadline = r.patience(now)
}

// timeTrips measures response times: that of the next packet to leave or, for a READ, whose responses are not requested
// one by one, of a packet that is due soon.
func (r *Requester) timeTrips(now time.Time) {
	r.trip.end(r.oldest, now)
	switch {
	case r.oldest == r.newest: // it is unknown when the next packet leaves
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

// patience returns the time until which a response is awaited: the specified timeout, or the usual response time if
// shorter.
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
	runs              bool
	psn               wire.PSN // of the packet
	at                time.Time
	smooth, deviation time.Duration // smooth is 0 until the first measurement
	least             time.Duration
	usual             time.Duration // how long to wait for a response; 0 if unknown
	doubts            uint8         // number of responses that came too soon to be caused by a probe
}

const (
	// leastPatience is the minimum wait before a probe, however short response times are: the peer is a program, which
	// may not have the processor.
	leastPatience = 500 * time.Microsecond
	mostDoubts    = 6 // each doubles the patience
)

// begin starts a measurement: the packet leaves now, or soon.
func (t *trip) begin(psn wire.PSN, now time.Time) {
	if !t.runs {
		t.runs, t.psn, t.at = true, psn, now
	}
}

func (t *trip) cancel() { t.runs = false }

// end ends the measurement, if its packet is among the acknowledged ones before a PSN.
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

// doubt handles a response to a probe after a time. If that is too short, the response was to an earlier packet, and
// the probe was premature for this peer.
func (t *trip) doubt(after time.Duration) {
	if after < t.least/2 && t.doubts < mostDoubts {
		t.doubts++
		t.learn()
	}
}
