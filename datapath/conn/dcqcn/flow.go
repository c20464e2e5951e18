package dcqcn

import (
	"math"
	"time"
)

// Flow is the reaction point: the rate of a queue pair. The zero Flow is free: it has no rate.
//
//	a notification ─► target = rate, rate × (1 - alpha/2), alpha rises
//	time, bytes    ─► rate = (rate + target) / 2; after some of these the target rises too
//	time           ─► alpha falls
type Flow struct {
	slowed       bool
	rate, target float64 // bits per second
	alpha        float64
	next         time.Time // when the next packet may leave

	reduced   time.Time // last
	alphaAt   time.Time // until when alpha has been followed, and the rises by time
	roseAt    time.Time
	byTime    int // rises since the rate fell
	byBytes   int
	sentBytes uint64 // since the last rise by bytes
}

const (
	// burst is how far a flow may be behind its rate and still catch up: who runs it may be asleep for as long.
	burst = 100 * time.Microsecond
	// mostSteps bounds the work of catching up with time. A flow that slept for longer rises a little later.
	mostSteps = 4096
	// mostWait is longer than any packet takes at LeastRate.
	mostWait = time.Second
)

// Slowed says that the flow has a rate: Holds and Sent are to be called for its packets.
func (f *Flow) Slowed() bool { return f.slowed }

// Rate is how many bits a second it sends at most; infinite if it is free.
func (f *Flow) Rate() float64 {
	if !f.slowed {
		return math.Inf(1)
	}
	return f.rate
}

// Next is when the next packet may leave.
func (f *Flow) Next() time.Time { return f.next }

// Holds says that the next packet has to wait until Next.
func (f *Flow) Holds(p *Parameters, now time.Time) bool {
	f.follow(p, now)
	if f.next.Sub(now) > mostWait { // the clock has gone back
		f.next = now
	}
	return f.slowed && f.next.After(now)
}

// Sent notes a packet of so many bytes that has left.
func (f *Flow) Sent(p *Parameters, now time.Time, bytes int) {
	if !f.slowed {
		return
	}
	if behind := now.Add(-burst); f.next.Before(behind) {
		f.next = behind
	}
	f.next = f.next.Add(time.Duration(float64(bytes) * 8 / f.rate * float64(time.Second)))
	if f.sentBytes += uint64(bytes); f.sentBytes >= p.RiseBytes {
		f.sentBytes = 0
		f.byBytes++
		f.rise(p)
	}
}

// Notified slows the flow down.
func (f *Flow) Notified(p *Parameters, now time.Time) {
	f.follow(p, now)
	switch since := now.Sub(f.reduced); {
	case !f.slowed:
		*f = Flow{slowed: true, rate: float64(p.LineRate), alpha: 1, next: now}
	case since >= 0 && since < p.ReduceTime:
		return
	}
	f.target = f.rate
	f.rate = max(f.rate*(1-f.alpha/2), float64(p.MinRate))
	f.alpha = (1-p.Gain)*f.alpha + p.Gain
	f.reduced, f.alphaAt, f.roseAt = now, now, now
	f.byTime, f.byBytes, f.sentBytes = 0, 0, 0
}

// follow catches up with the time.
func (f *Flow) follow(p *Parameters, now time.Time) {
	if !f.slowed {
		return
	}
	for steps := 0; now.Sub(f.alphaAt) >= p.AlphaTime; steps++ {
		if steps == mostSteps {
			f.alphaAt = now
			break
		}
		f.alphaAt = f.alphaAt.Add(p.AlphaTime)
		f.alpha *= 1 - p.Gain
	}
	for steps := 0; f.slowed && now.Sub(f.roseAt) >= p.RiseTime; steps++ {
		if steps == mostSteps {
			f.roseAt = now
			break
		}
		f.roseAt = f.roseAt.Add(p.RiseTime)
		f.byTime++
		f.rise(p)
	}
}

// rise is one step of recovery. A flow that has reached the line's rate is free.
func (f *Flow) rise(p *Parameters) {
	switch most, least := max(f.byTime, f.byBytes), min(f.byTime, f.byBytes); {
	case least > p.Stages:
		f.target += float64(least-p.Stages) * float64(p.HyperRise)
	case most > p.Stages:
		f.target += float64(p.AdditiveRise)
	}
	line := float64(p.LineRate)
	f.target = min(f.target, line)
	if f.rate = (f.rate + f.target) / 2; f.rate >= line-float64(p.AdditiveRise) {
		*f = Flow{}
	}
}
