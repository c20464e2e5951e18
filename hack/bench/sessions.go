// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"runtime"

	"github.com/roced/roced/hack/bench/harness"
	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca"
)

// manySessions is the number of programs on each card. One of them is busy.
const manySessions = 256

// runSessions measures how idle sessions slow a busy one down. Each idle session has a queue pair and has sent a
// message.
func (b *bench) runSessions(crowded bool) (rate float64, err error) {
	w, err := openWire()
	if err != nil {
		return 0, err
	}
	defer w.close()
	for range manySessions - 1 {
		if !crowded {
			break
		}
		for _, card := range []*hca.Card{w.left, w.right} {
			if err := crowd(card, w.receiver, wireReceiver); err != nil {
				return 0, err
			}
		}
	}
	targets, err := queuePairTargets(w.sender, w.receiver, wireReceiver, 1)
	if err != nil {
		return 0, err
	}
	runtime.GC() // collects the garbage of the setup before the measurement
	return stream(w.sender, w.receiver, targets, b.Duration)
}

// crowd adds a program to a card. It sends one message and is idle afterwards.
func crowd(card *hca.Card, to *program, there netip.Addr) error {
	session, err := card.NewSession(hca.SessionConfig{})
	if err != nil {
		return err
	}
	idle, err := newProgram(session, false, engineSize)
	if err != nil {
		return err
	}
	ah, err := idle.addressOf(harness.Endpoint{Address: there.String()})
	if err != nil {
		return err
	}
	message := idle.sends(harness.Job{Size: engineSize}, nil)[:1]
	message[0].AH, message[0].RemoteQPN, message[0].Flags = ah, to.qp.Number(), verbs.SendSignaled
	if err := idle.qp.PostSend(message); err != nil {
		return err
	}
	return drain(idle.send, idle.wcs[:], 1)
}
