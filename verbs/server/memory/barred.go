// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"sync"
	"time"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/server/peer"
)

// barred are users whose programs have made the card wait, or could have: they have taken pages out of memory that the card
// uses, or had too many. For barredFor they share no memory, or open no sessions.
type barred struct {
	why string // the violation of a program of the user, and the effect of the end of the bar

	mu    sync.Mutex
	until map[peer.Holder]time.Time
}

const barredFor = time.Minute

const (
	whyNoMemory   = "has taken pages out of memory that it had registered, or its files were too large; its programs can register memory of their own again"
	whyNoSessions = "has taken pages out of its session's memory; the user's programs can open devices again"
)

func newBarred(why string) barred { return barred{why: why, until: map[peer.Holder]time.Time{}} }

// add bars a user, and reports whether it was barred already.
func (b *barred) add(user peer.Holder, now time.Time) (again bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, until := range b.until {
		if until.Before(now) {
			delete(b.until, other)
		}
	}
	_, again = b.until[user]
	b.until[user] = now.Add(barredFor)
	return again
}

// check returns an error if a user is barred.
func (b *barred) check(user peer.Holder, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if left := b.until[user].Sub(now); left > 0 {
		return fmt.Errorf("%w: a program of %v %s in %v", verbs.ErrPermission, user, b.why, left.Round(time.Second))
	}
	return nil
}
