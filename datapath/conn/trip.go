package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

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
