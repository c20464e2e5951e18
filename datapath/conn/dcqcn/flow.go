// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"math"
	"time"
)

// Flow is the reaction point: the rate limit of a queue pair. The zero Flow has no limit.
//
//	a notification ─► target = rate, rate = rate × (1 - alpha/2), alpha rises
//	time, bytes    ─► rate = (rate + target) / 2; after Stages of these steps the target rises too
//	time           ─► alpha falls
type Flow struct {
	slowed       bool
	rate, target float64 // bits per second
	alpha        float64
	next         time.Time // earliest time of the next packet

	reduced   time.Time // time of the last reduction
	alphaAt   time.Time // time up to which alpha has been updated
	roseAt    time.Time // time of the last rise by time
	byTime    int       // number of rises by time since the last reduction
	byBytes   int       // number of rises by bytes since the last reduction
	sentBytes uint64    // bytes sent since the last rise by bytes
}

const (
	// burst is the maximum delay for which a flow may compensate by sending faster. The thread that runs it may sleep
	// for that long.
	burst = 100 * time.Microsecond
	// mostSteps is the maximum number of overdue steps that follow applies. A flow that was idle for longer recovers a
	// little later.
	mostSteps = 4096
	// mostWait is longer than the transmission of any packet at LeastRate takes.
	mostWait = time.Second
)

// Slowed reports whether the flow has a rate limit: Holds and Sent must then be called for its packets.
func (f *Flow) Slowed() bool { return f.slowed }

// Rate returns the rate limit in bits per second; infinite without a limit.
func (f *Flow) Rate() float64 {
	if !f.slowed {
		return math.Inf(1)
	}
	return f.rate
}

// Next returns the earliest time at which the next packet may be sent.
func (f *Flow) Next() time.Time { return f.next }

// Holds reports whether the next packet has to wait until Next.
func (f *Flow) Holds(p *Parameters, now time.Time) bool {
	f.follow(p, now)
	if f.next.Sub(now) > mostWait { // the clock was set back
		f.next = now
	}
	return f.slowed && f.next.After(now)
}

// Sent records that a packet with a length in bytes has been sent.
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

// Notified reduces the rate after a CNP, unless the last reduction is more recent than ReduceTime.
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

// follow applies the changes that are due at now.
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

// rise makes one step of recovery. A flow that has reached the line rate has no limit any more.
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
