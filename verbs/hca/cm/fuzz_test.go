// SPDX-License-Identifier: Apache-2.0

package cm

import (
	"testing"
	"time"

	"github.com/roced/roced/datapath/wire"
)

// FuzzReceive: each datagram is counted once and has at most one answer; and answers sent to another manager end there,
// after at most one further exchange.
func FuzzReceive(f *testing.F) {
	for _, capture := range []string{"udaddy", "ucmatose", "rping", "rdmacm_nolistener", "sidr_nolistener"} {
		for _, m := range peerMessages(f, capture) {
			f.Add([]byte(m))
		}
	}
	for _, method := range []wire.Method{wire.MethodGet, wire.MethodSet, wire.MethodGetResp} {
		f.Add([]byte(built(0x0001, func(h *wire.MADHeader) { h.Method = method })))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		a, b := New(counting()), New(counting())
		_, err := a.Listen(ListenConfig{Service: service})
		check(t, err)
		_, err = a.Listen(ListenConfig{Service: connections7174, Connections: true})
		check(t, err)
		_, err = a.Ask(start, ask(there, nil))
		check(t, err)
		_, err = a.Connect(start, connect(there, 5, "owner"))
		check(t, err)
		sent(a)
		a.Receive(start, there, payload)
		if c := a.Counters(); c.received() != 1 {
			t.Errorf("counted as %d", c.received())
		}
		answers := sent(a)
		for exchanges := 0; len(answers) > 0; exchanges++ {
			if len(answers) > 1 || exchanges > 1 {
				t.Fatalf("exchange %d: %d answers to %x", exchanges, len(answers), payload)
			}
			b.Receive(start, back, answers[0].MAD[:])
			answers = sent(b)
			a, b = b, a
		}
		for _, m := range []*Manager{a, b} {
			m.Expire(start.Add(time.Hour))
			if at, some := m.Deadline(); some && at.Before(start.Add(time.Hour)) {
				t.Errorf("got a timer at %v, want none", at)
			}
		}
	})
}

// counting returns the numbers from 1 on.
func counting() func() uint64 {
	n := uint64(0)
	return func() uint64 { n++; return n }
}
