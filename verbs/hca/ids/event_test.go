// SPDX-License-Identifier: Apache-2.0

package ids

import (
	"testing"

	"github.com/roced/roced/verbs"
	"github.com/roced/roced/verbs/hca/cm"
	"github.com/roced/roced/verbs/ib"
	"golang.org/x/sys/unix"
)

// TestUnansweredEnd: a connection whose peer did not answer the DREQ ends with ETIMEDOUT.
func TestUnansweredEnd(t *testing.T) {
	for unanswered, status := range map[bool]int32{true: -int32(unix.ETIMEDOUT), false: 0} {
		got := (&ID{}).eventOf(&cm.Event{Kind: cm.EventDisconnected, Unanswered: unanswered})
		if got.Type != ib.CMEventDisconnected || got.Status != status {
			t.Errorf("unanswered %v: %+v", unanswered, got)
		}
	}
}

// TestRoomForEvents: an id with too many queued events starts no more operations; each join allows one more event.
func TestRoomForEvents(t *testing.T) {
	i := &ID{channel: &Channel{}, joins: make([]*idJoin, 2)}
	for range maxEvents + 2 {
		check(t, i.room())
		i.put(&idEvent{})
	}
	refused(t, i.room(), verbs.ErrLimit, "66 events of the id wait")
	i.channel.next()
	check(t, i.room())
}
