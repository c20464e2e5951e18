package hca

import (
	"errors"
	"slices"
	"time"
)

// A device looks at news at once, and then leaves what comes next to gather: at least
// quietPause, and as long as the look has taken, so that a host where much changes keeps half
// a processor busy at the worst.
const quietPause = time.Millisecond

var (
	// retryPauses are after which a look that failed is made again.
	retryPauses = []time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second, 5 * time.Second}

	// askPauses are after which neighbours that have not answered since the link came up are asked
	// for again: the first question may have been lost, where the other end came up later. The
	// kernel itself repeats it after a second.
	askPauses = []time.Duration{20 * time.Millisecond, 80 * time.Millisecond, 200 * time.Millisecond}

	// carrierPauses are between looks for a carrier that was lost, for two seconds: the kernel
	// gathers its news of carriers for up to a second.
	carrierPauses = slices.Repeat([]time.Duration{10 * time.Millisecond}, 200)
)

// repeats is what is done again after pauses, as many times as there are.
type repeats struct {
	timer  *time.Timer
	pauses []time.Duration
	next   int
}

func newRepeats(pauses []time.Duration) *repeats {
	r := &repeats{timer: time.NewTimer(0), pauses: pauses}
	r.timer.Stop()
	return r
}

// again sets the timer for the next pause, if there is one.
func (r *repeats) again() {
	if r.next < len(r.pauses) {
		r.timer.Reset(r.pauses[r.next])
		r.next++
	}
}

// anew starts with the first pause next time.
func (r *repeats) anew() { r.next = 0 }

// keepUp follows the host until the device is closed.
func (d *Device) keepUp() {
	d.news.Missed() // what came between the first look and now
	retry, ask, carrier := newRepeats(retryPauses), newRepeats(askPauses), newRepeats(carrierPauses)
	for {
		var found looked
		began := time.Now()
		select {
		case <-d.stop:
			return
		case <-d.news.ready:
			found = d.look(d.news.take())
		case <-d.refused:
			found = d.look(changes{port: true})
		case <-retry.timer.C:
			found = d.look(everything())
		case <-carrier.timer.C:
			found = d.look(changes{port: true})
		case <-ask.timer.C:
			found = looked{failed: d.askAgain() != nil}
			ask.again()
		}
		if found.cameUp {
			ask.anew()
			ask.again()
		}
		if found.noCarrier {
			carrier.again()
		} else {
			carrier.anew()
		}
		if found.failed {
			retry.next = min(retry.next, len(retry.pauses)-1) // the last for ever
			retry.again()
		} else {
			retry.anew()
		}
		if !d.pause(max(quietPause, time.Since(began))) {
			return
		}
	}
}

// noteRefused is told by the engine that the interface drops what is sent: it may have lost its
// carrier.
func (d *Device) noteRefused() {
	select {
	case d.refused <- struct{}{}:
	default:
	}
}

func (d *Device) askAgain() (failed error) {
	if !d.linkUp() {
		return nil
	}
	for hops := range slices.Chunk(d.hopsThat(func(*hop) bool { return true }), atOnce) {
		failed = errors.Join(failed, d.updateHops(hops, true))
	}
	return failed
}

// pause waits; false when the device is closed.
func (d *Device) pause(long time.Duration) bool {
	select {
	case <-d.stop:
		return false
	case <-time.After(long):
		return true
	}
}

// looked is what a look has found.
type looked struct {
	cameUp    bool // the link
	noCarrier bool // the interface is up, but for the carrier
	failed    bool // something could not be asked
}

// look brings the device up to what the host says now. What could not be asked stays as it was
// known. Without its interface the device has failed.
func (d *Device) look(c changes) (found looked) {
	cameUp, err := d.update(c)
	switch was := d.lagging.Swap(err != nil); {
	case errors.Is(err, errInterfaceGone):
		d.fail(err)
		return looked{}
	case d.Err() != nil:
		return looked{}
	case err != nil && !was:
		d.log.Warn("cannot look at what has changed on the host; going on with what was known, and trying again", "device", d.name, "error", err)
	case err == nil && was:
		d.log.Info("what has changed on the host is known again", "device", d.name)
	}
	return looked{cameUp: cameUp, noCarrier: d.wantsCarrier(), failed: err != nil}
}
