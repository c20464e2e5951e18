// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/roced/roced/hack/bench/harness"
)

// blockingRate is the number of messages per second that a sleeping receiver gets.
const blockingRate = 10000

// CQ moderation of the "moderated" receiver: an event after 32 messages or 2000 µs.
const moderationCount, moderationPeriod = 32, 2000

// blocking measures the processor time and the wake-ups of a receiver that sleeps before each of 10,000 messages per
// second, without and with CQ moderation.
func (b *bench) blocking() error {
	variants := []string{"udp", "worker", "moderated"}
	all := map[string][]harness.Result{}
	for range b.Rounds {
		for _, variant := range variants {
			j := harness.Job{Variant: variant, Size: 64, Rate: blockingRate}
			receiver, sender := j, j
			receiver.Role, sender.Role = "receive paced", "send paced"
			if variant == "moderated" {
				sender.Variant = "worker"
			}
			_, received, err := b.pair(receiver, sender)
			if err != nil {
				return err
			}
			all[variant] = append(all[variant], received)
		}
	}
	for _, variant := range variants {
		b.Add(harness.Record{
			Name: "blocking", Variant: variant, Size: 64, Rate: blockingRate, CPU: medianOf(all[variant], func(r harness.Result) float64 { return r.CPU }),
			PerSecond: medianOf(all[variant], func(r harness.Result) float64 { return r.PerSecond }), Wakes: medianOf(all[variant], func(r harness.Result) float64 { return r.Wakes }),
		})
	}
	return nil
}

// medianOf returns the median of one figure of all rounds.
func medianOf(rounds []harness.Result, figure func(harness.Result) float64) float64 {
	var all []float64
	for _, r := range rounds {
		all = append(all, figure(r))
	}
	return harness.Median(all)
}

// sleeper measures a receiver from its first message to its last. Each wakeUp counts one wake-up.
type sleeper struct {
	harness.Meter
	wakes  float64
	before time.Duration // processor time at the first message
	used   time.Duration // processor time from the first to the last message
}

func (s *sleeper) wakeUp(n int) {
	if n == 0 {
		return
	}
	if s.Messages == 0 {
		s.before = processorTime()
	}
	s.Add(n)
	s.wakes++
	s.used = processorTime() - s.before
}

func (s *sleeper) result() harness.Result {
	r := s.Meter.Result()
	elapsed := s.Last.Sub(s.First).Seconds()
	r.CPU, r.Wakes = s.used.Seconds()/elapsed, s.wakes/elapsed
	return r
}

// pace calls send at the job's rate. It spins between the calls, since sleeping would be less precise.
func pace(j harness.Job, send func() error) (sent int, err error) {
	each := paceOf(j.Rate)
	start := time.Now()
	for next := start; time.Since(start) < j.Duration; next = next.Add(each) {
		for time.Until(next) > 0 {
		}
		if err := send(); err != nil {
			return sent, err
		}
		sent++
	}
	return sent, nil
}

func udpSendPaced(j harness.Job) (harness.Result, error) {
	fd, err := udpSocket(j, time.Second)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	batch := newMessageBatch(1, j.Size)
	sent, err := pace(j, func() error { _, err := batch.send(fd); return err })
	return harness.Result{Messages: uint64(sent)}, err
}

func udpReceivePaced(j harness.Job) (harness.Result, error) {
	fd, err := udpSocket(j, 100*time.Millisecond)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	message := make([]byte, 2048)
	var s sleeper
	for !harness.Stopping.Load() {
		if udpRead(fd, message, true) > 0 {
			s.wakeUp(1)
		}
	}
	return s.result(), nil
}

// rocedSendPaced polls for its completions instead of sleeping.
func rocedSendPaced(j harness.Job) (harness.Result, error) {
	p, err := openProgram(j)
	if err != nil {
		return harness.Result{}, err
	}
	p.wait = false
	ah, err := p.addressOf(j.Peer)
	if err != nil {
		return harness.Result{}, err
	}
	wrs := p.sends(j, ah)[batch-1:]
	if err := harness.Announce(harness.Endpoint{}); err != nil {
		return harness.Result{}, err
	}
	sent, err := pace(j, func() error {
		if err := p.qp.PostSend(wrs); err != nil {
			return err
		}
		_, err := p.poll(p.send)
		return err
	})
	if err != nil {
		return harness.Result{}, err
	}
	return harness.Result{Messages: uint64(sent)}, p.close()
}

func rocedReceivePaced(j harness.Job) (harness.Result, error) {
	p, err := openReceiver(j)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{QPN: uint32(p.qp.Number())}); err != nil {
		return harness.Result{}, err
	}
	if j.Variant == "moderated" {
		p.wait = true
		if err := p.recv.Modify(moderationCount, moderationPeriod); err != nil {
			return harness.Result{}, err
		}
	}
	var s sleeper
	for !harness.Stopping.Load() {
		n, err := p.poll(p.recv)
		if err != nil {
			return harness.Result{}, err
		}
		s.wakeUp(n)
		if err := p.repost(n); err != nil {
			return harness.Result{}, err
		}
	}
	return s.result(), p.close()
}
