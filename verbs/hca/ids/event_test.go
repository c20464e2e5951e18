package ids

import (
	"testing"

	"github.com/roced/roced/verbs"
)

// TestRoomForEvents: an id begins nothing more when so many of its events wait, and one more for each join.
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
