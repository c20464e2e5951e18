// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"fmt"
	"sync"
	"time"
)

// connectRate limits how often each user connects. Otherwise a user that connects in a loop would take the processors'
// time, although each connection is short. Connections above the rate are closed unread.
type connectRate struct {
	mu      sync.Mutex
	due     map[Holder]time.Time // when the user's connections so far would be over, at one every connectGap
	refused uint64
}

const (
	connectGap   = 4 * time.Millisecond
	connectBurst = 1000 // connections at once
	mostRated    = 1000 // users that have a rate of their own; the others share one
)

// Unknown stands for peers that are not known, and for all users that have no entry of their own in a table.
var Unknown = Holder{UID: noUID}

// allow counts a connection of a user; an error if it is above the rate.
func (r *connectRate) allow(h Holder, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	user := h
	due, known := r.due[user]
	if !known && len(r.due) >= mostRated {
		r.expire(now)
		if len(r.due) >= mostRated {
			user = Unknown
			due = r.due[user]
		}
	}
	if due.Before(now) {
		due = now
	}
	if due.Sub(now) > (connectBurst-1)*connectGap {
		r.refused++
		return fmt.Errorf("%v connects too often: %d a second are served, after %d at once", h, time.Second/connectGap, connectBurst)
	}
	if r.due == nil {
		r.due = map[Holder]time.Time{}
	}
	r.due[user] = due.Add(connectGap)
	return nil
}

// expire removes the users that may have a full burst again.
func (r *connectRate) expire(now time.Time) {
	for user, due := range r.due {
		if !due.After(now) {
			delete(r.due, user)
		}
	}
}
