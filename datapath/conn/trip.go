package conn

import (
	"time"

	"github.com/roced/roced/datapath/wire"
)

// trip measures how long answers take (as RFC 6298 has it): of one packet at a time, and of none that was sent again.
type trip struct {
	runs              bool
	psn               wire.PSN // of the packet
	at                time.Time
	smooth, deviation time.Duration // smooth is 0 until one was measured
	least             time.Duration
	usual             time.Duration // how long to wait for an answer; 0 if that is not known
	doubts            uint8         // answers that came too soon to be those to a probe
}

const (
	// leastPatience is for how long nobody is asked again, however quick answers are: the peer is a program, which may
	// not have the processor.
	leastPatience = 500 * time.Microsecond
	mostDoubts    = 6 // each doubles the patience
)

// begin says that the packet leaves now, or soon.
func (t *trip) begin(psn wire.PSN, now time.Time) {
	if !t.runs {
		t.runs, t.psn, t.at = true, psn, now
	}
}

func (t *trip) cancel() { t.runs = false }

// end says that all packets before one are acknowledged.
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

// doubt is for a probe that was answered after a time: one that is too short was the answer to something earlier, and
// the probe came too soon for this peer.
func (t *trip) doubt(after time.Duration) {
	if after < t.least/2 && t.doubts < mostDoubts {
		t.doubts++
		t.learn()
	}
}
