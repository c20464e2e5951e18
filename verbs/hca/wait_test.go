// SPDX-License-Identifier: Apache-2.0

package hca

import (
	"testing"

	"github.com/roced/roced/verbs"
)

// Waiting and arriving race: a program that arms the queue while a message arrives is woken, also by a worker that
// sleeps immediately (verbstest tests the same for a card with default options).
func TestArmedRace(t *testing.T) {
	for name, options := range map[string][]Option{
		"worker":         {WithoutInline(), WithSpin(0)},
		"without a spin": {WithSpin(0)},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWirePair(t, options...)
			a, b := w.a, w.b
			there, back := a.ah("10.0.0.2"), b.ah("10.0.0.1")
			const rounds = 2000
			a.receive(0)
			b.receive(0)
			echo := make(chan struct{})
			go func() {
				defer close(echo)
				for range rounds {
					answer(b, back, a)
				}
			}()
			for range rounds {
				a.post(a.send(9, there, b))
				a.wait(2)
				a.receive(0)
			}
			<-echo
		})
	}
}

// answer waits for a message, reposts the receive, sends a response, and waits for its completion.
func answer(s *station, ah *verbs.AH, peer *station) {
	s.wait(1)
	s.receive(0)
	s.post(s.send(9, ah, peer))
	s.wait(1)
}
