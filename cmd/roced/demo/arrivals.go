// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roced/roced/cmd/roced/internal/card"
)

// arrivals counts the messages of a stream that one queue pair receives. Datagrams may be lost, and may overtake each other: the kernel
// has a backlog for each processor, and on a busy host a sender moves between processors. So a received message is compared with each
// pending one, the oldest first.
type arrivals struct {
	pending  []uint32 // numbers of messages that have not arrived, ascending; the first lost of them are given up
	lost     int
	received int
	late     int    // messages that arrived after one that was sent after them
	next     uint32 // follows the highest number that has arrived
	naps     int    // since the last arrival
}

const (
	nap = time.Millisecond
	// patience is the number of naps after which pending messages are given up.
	patience = 500
)

// expect adds a message that is sent.
func (a *arrivals) expect(number uint32) { a.pending = append(a.pending, number) }

// inFlight returns the number of messages that are sent, and neither received nor given up.
func (a *arrivals) inFlight() int { return len(a.pending) - a.lost }

// done returns the number of messages that are received or given up.
func (a *arrivals) done() int { return a.received + a.lost }

// take removes the pending message that the received one equals. The error is the difference to the message that is due.
func (a *arrivals) take(difference func(number uint32) error) (err error) {
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
	if i < a.lost { // it was given up too early
		a.lost--
	}
	a.received++
	a.naps = 0
}

// none notes an empty poll. After a while it gives up the pending messages, and after a longer one it fails. It counts naps, since a
// busy host may stop the process for any time.
func (a *arrivals) none() error {
	if a.inFlight() == 0 {
		return nil
	}
	if a.naps++; a.naps > int(card.StallTimeout/nap) {
		return fmt.Errorf("no message arrived within %v; %d did before", card.StallTimeout, a.received)
	}
	if a.naps%patience == 0 && a.received > 0 {
		a.lost = len(a.pending)
	}
	time.Sleep(nap)
	return nil
}
