// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
)

// arrivals counts the messages of a stream that one queue pair receives. Datagrams may be lost or reordered: the kernel
// has one backlog per CPU, and on a busy host a sender migrates between CPUs. A received message is therefore compared
// with every pending one, oldest first.
type arrivals struct {
	pending    []uint32 // numbers of messages that have not arrived, ascending; the first lost elements count as lost
	lost       int
	received   int
	late       int    // messages that arrived after a message that was sent later
	next       uint32 // one more than the highest received number
	emptyPolls int    // empty polls since the last arrival
}

const (
	pollInterval = time.Millisecond
	// lossPolls is the number of empty polls after which pending messages count as lost.
	lossPolls = 500
)

// expect adds a message that is sent.
func (a *arrivals) expect(number uint32) { a.pending = append(a.pending, number) }

// inFlight returns the number of sent messages that are neither received nor counted as lost.
func (a *arrivals) inFlight() int { return len(a.pending) - a.lost }

// done returns the number of messages that are received or counted as lost.
func (a *arrivals) done() int { return a.received + a.lost }

// match removes the pending message that equals the received one. If no message does, it returns the difference from
// the message that was expected first.
func (a *arrivals) match(difference func(number uint32) error) (err error) {
	for _, from := range [][2]int{{a.lost, len(a.pending)}, {0, a.lost}} {
		for i := from[0]; i < from[1]; i++ {
			different := difference(a.pending[i])
			if different == nil {
				a.remove(i)
				return nil
			}
			if err == nil {
				err = different
			}
		}
	}
	if err == nil {
		err = errors.New("no message is outstanding")
	}
	return err
}

func (a *arrivals) remove(i int) {
	if a.pending[i] < a.next {
		a.late++
	}
	a.next = max(a.next, a.pending[i]+1)
	a.pending = slices.Delete(a.pending, i, i+1)
	if i < a.lost { // it counted as lost
		a.lost--
	}
	a.received++
	a.emptyPolls = 0
}

// emptyPoll records a poll without messages, and sleeps. After lossPolls of them the pending messages count as lost; after
// card.StallTimeout it fails. It counts polls instead of measuring time, since a busy host may suspend the process for
// any length of time.
func (a *arrivals) emptyPoll() error {
	if a.inFlight() == 0 {
		return nil
	}
	if a.emptyPolls++; a.emptyPolls > int(card.StallTimeout/pollInterval) {
		return fmt.Errorf("no message arrived within %v; %d did before", card.StallTimeout, a.received)
	}
	if a.emptyPolls%lossPolls == 0 && a.received > 0 {
		a.lost = len(a.pending)
	}
	time.Sleep(pollInterval)
	return nil
}
