// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
)

// drainTime is the time without a message after which a receiver assumes that all have arrived.
const drainTime = 50 * time.Millisecond

// receiveMixed receives mixed traffic with a queue pair for each of the host's addresses.
func receiveMixed(j harness.Job) (harness.Result, error) {
	p, err := openProgram(j)
	if err != nil {
		return harness.Result{}, err
	}
	m, err := p.newMembers(len(mixedAddresses), depth, j.Size)
	if err != nil {
		return harness.Result{}, err
	}
	if err := harness.Announce(harness.Endpoint{QPNs: m.numbers()}); err != nil {
		return harness.Result{}, err
	}
	var counted harness.Meter
	var seen sequences
	for last := time.Now(); !harness.Stopping.Load() || time.Since(last) < drainTime; {
		n, err := m.receive(&seen)
		if err != nil {
			return harness.Result{}, err
		}
		if n > 0 {
			counted.Add(n)
			last = time.Now()
		}
	}
	r := counted.Result()
	return r, errors.Join(r.AddDrops(p.device), p.close())
}

// numbers returns the members' QPNs.
func (m *members) numbers() (all []verbs.QPN) {
	for _, member := range m.all {
		all = append(all, member.qp.Number())
	}
	return all
}

// receive polls for messages, checks them, and reposts their receives.
func (m *members) receive(seen *sequences) (int, error) {
	n, err := m.poll(m.recv)
	if err != nil {
		return 0, err
	}
	for i := range m.wcs[:n] {
		wc := &m.wcs[i]
		_, message := wc.Payload(m.memory(wc.ID))
		if err := seen.check(message); err != nil {
			return 0, err
		}
		if err := m.post(wc.ID); err != nil {
			return 0, err
		}
	}
	return n, nil
}
