// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// bottleneck is a link that many flows share, in simulated time. Its queue marks packets with a probability that grows
// with the length of the queue, as in switches.
type bottleneck struct {
	*rand.Rand
	p        Parameters
	now      time.Time
	rate     float64   // bits per second
	free     time.Time // when the last packet in the queue has left
	flows    []*source
	longest  time.Duration // maximum length of the queue
	mark, to time.Duration // queue lengths from which some packets and all packets are marked
	marked   int
}

// source is a flow that always has packets to send.
type source struct {
	Flow
	Notifier
	due   []time.Time // of notifications in flight
	bytes int
	gap   time.Duration // longest time without a packet
	last  time.Time
}

const (
	packet = 4096 + 58
	trip   = 20 * us // of a packet and its notification

	mostMarked = 0.1 // of the packets, below the length at which all are marked

	// buffer is the maximum length of the queue, as in switches (2.5 MB at 10 Gbit/s); further packets are lost.
	// Without a maximum, flows that begin one after the other very rarely make the queue so long that notifications
	// arrive too late to shorten it.
	buffer = 2 * time.Millisecond
)

// next sends the packet with the earliest time.
func (b *bottleneck) next() {
	at, first := b.now.Add(time.Hour), (*source)(nil)
	for _, s := range b.flows {
		when := b.now
		if s.Slowed() && s.Next().After(b.now) {
			when = s.Next()
		} else if !s.Slowed() { // as fast as the machine can
			when = s.last.Add(time.Duration(packet * 8 / float64(b.p.LineRate) * 1e9))
		}
		if when.Before(at) || when.Equal(at) && b.IntN(2) == 0 {
			at, first = when, s
		}
	}
	if at.After(b.now) {
		b.now = at
	}
	for _, s := range b.flows {
		for len(s.due) > 0 && !s.due[0].After(b.now) {
			s.Notified(&b.p, s.due[0])
			s.due = s.due[1:]
		}
	}
	if first.Holds(&b.p, b.now) {
		return
	}
	first.Sent(&b.p, b.now, packet)
	b.enqueue(first)
}

func (b *bottleneck) enqueue(s *source) {
	if b.free.Before(b.now) {
		b.free = b.now
	}
	waits := b.free.Sub(b.now)
	s.gap, s.last = max(s.gap, b.now.Sub(s.last)), b.now
	b.longest = max(b.longest, waits)
	if waits > buffer {
		return
	}
	b.free = b.free.Add(time.Duration(packet * 8 / b.rate * 1e9))
	if probability := mostMarked * float64(waits-b.mark) / float64(b.to-b.mark); waits > b.to || b.Float64() < probability {
		b.marked++
		if arrives := b.free.Add(trip); s.Marked(&b.p, arrives) {
			s.due = append(s.due, arrives.Add(trip))
		}
	}
	s.bytes += packet
}

// Two to sixteen flows share a link: each has about the same rate, the link is used, its queue stays short, and no flow
// starves.
func TestFairShares(t *testing.T) {
	for _, count := range []int{2, 3, 4, 8, 16} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			b := &bottleneck{Rand: r, p: Defaults(), now: start, rate: 10e9, free: start, mark: 40 * us, to: 160 * us}
			for i := range count { // one after the other
				b.flows = append(b.flows, &source{last: b.now})
				for end := start.Add(time.Duration(i+1) * 5 * time.Millisecond); b.now.Before(end); {
					b.next()
				}
			}
			for end := b.now.Add(300 * time.Millisecond); b.now.Before(end); {
				b.next()
			}
			b.longest, b.marked = 0, 0
			for _, s := range b.flows {
				s.bytes, s.gap = 0, 0
			}
			const measured = 300 * time.Millisecond
			for end := b.now.Add(measured); b.now.Before(end); {
				b.next()
			}
			sum, squares, least, gap := 0.0, 0.0, 1.0, time.Duration(0)
			for _, s := range b.flows {
				share := float64(s.bytes) * 8 / measured.Seconds() / b.rate * float64(count)
				sum, squares, least, gap = sum+share, squares+share*share, min(least, share), max(gap, s.gap)
			}
			fairness := sum * sum / squares / float64(count) // Jain's index
			t.Logf("seed %d: used %.3f, fairness %.3f, least share %.2f, queue at most %v, %d marked, longest gap %v",
				seed, sum/float64(count), fairness, least, b.longest, b.marked, gap)
			if used := sum / float64(count); used < 0.85 || fairness < 0.9 || least < 0.5 || b.longest > time.Millisecond || gap > 5*time.Millisecond {
				t.Error("not fair, or the link is not used, or the queue is long")
			}
		})
	}
}
